#!/usr/bin/env bash
# The check while working: builds, vets and tests on SQLite, without PostgreSQL, Chromium and Node, and says how long
# each step took. Tests of one process come from Go's cache if nothing changed; those of test/ start the program, which
# the cache does not see. Go does not link programs again that it finds in bin/quick unchanged.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CASTELLAN_TEST_DATABASES=sqlite

# Left out: browsers, measurements, tests that wait for what happens after failures, and single tests that take over ten
# seconds or need Node.
left='/web|/internal/(bench|budget|localcluster|pgtest)|/test/(console|faults)'
slow='^Test(DemoContinuesAfterKill|DemoFillsEveryList|EveryEndpointAcceptsOnlyItsTokenClass'
slow+='|GuardedOperationIsNotApproved|FaultsWalletAndLedgerAgreeAfterKills|GeneratedClients)$'

step() {
	local from=$SECONDS name=$1
	shift
	echo "== $name"
	"$@"
	echo "== $name: $((SECONDS - from)) s"
}

# Cached packages are counted, the others are printed.
packages() {
	go test -vet=off $(go list ./... castellan/client/... | grep -vE "$left|/test/") |
		awk '/no test files/ { next } /\(cached\)/ { n++; next }
			{ print; fflush() } END { print n + 0 " packages unchanged" }'
}

stories() {
	go test -vet=off -count=1 -p $(($(getconf _NPROCESSORS_ONLN) + 1)) -skip "$slow" \
		$(go list ./test/office ./test/... | grep -vE "$left") | grep -v 'no test files'
}

step build go build -o bin/quick/ ./...
step vet go vet ./... castellan/client/...
step "packages of one process" packages
step "stories of the started program" stories
