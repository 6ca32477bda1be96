#!/usr/bin/env bash
# Runs what make test leaves out, in parts of at most an hour. A part that passed on this commit is not repeated, so an
# interrupted run continues where it was. The results are printed at the end and stay in bin/test-all/COMMIT.
#
#   scripts/test-all.sh [part ...]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

parts=(verify deploy databases browser bench clients kills faults-cluster faults-times faults-kills faults-restores
	faults-models race-domain race-rest starved planted)
[ $# -gt 0 ] && parts=("$@")

testrun() { scripts/temp-in-memory.sh go run ./internal/testrun "$@"; }
postgres() { scripts/temp-in-memory.sh go run ./internal/pgtest/cmd/pgserve "$@"; }

run() {
	case $1 in
	verify) CHECK_ALL=1 make --no-print-directory verify ;;
	deploy) make --no-print-directory deploy-run ;;
	# Stories, rights and fields on the database that make test does not use for them.
	databases) CASTELLAN_TEST_STORIES=both testrun ./http ./test/access ./test/... ;;
	browser | bench | clients | kills) testrun -part "$1" ./... ;;
	faults-*) make --no-print-directory "$1" ;;
	race-domain) CGO_ENABLED=1 testrun -race ./domain/... ./persistence/... ./actors/... ./cluster/... ./config/... ;;
	race-rest)
		CGO_ENABLED=1 testrun -race -timeout 50m ./http ./test/access \
			$(go list ./... | grep -vE '/(domain|persistence|actors|cluster|config)(/|$)')
		;;
	starved) scripts/test-starved.sh 2 './test/console ./http ./test/access ./...' ;;
	planted) scripts/planted.sh ;;
	*) echo "no part $1: ${parts[*]}" >&2 && return 2 ;;
	esac
}

results=bin/test-all/$(git rev-parse HEAD)
mkdir -p "$results"
failed=0
for part in "${parts[@]}"; do
	if [ -e "$results/$part.passed" ]; then
		echo "== $part: passed before on this commit"
		continue
	fi
	echo "== $part"
	from=$SECONDS
	if run "$part" 2>&1 | tee "$results/$part.log"; then
		echo "$((SECONDS - from)) s" >"$results/$part.passed"
	else
		failed=$((failed + 1))
	fi
	echo "== $part: $((SECONDS - from)) s"
done

echo "test-all of $(git rev-parse --short HEAD):"
for part in "${parts[@]}"; do
	if [ -e "$results/$part.passed" ]; then
		echo "  passed  $part, $(cat "$results/$part.passed")"
	else
		echo "  FAILED  $part ($results/$part.log)"
	fi
done
[ "$failed" -eq 0 ]
