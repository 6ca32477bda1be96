#!/bin/sh
# Adds the databases that a published version leaves to the test of upgrades, and runs that test. Needs PostgreSQL with
# its clients.
#
#   scripts/upgrade-fixture.sh v1.2.0
set -eu

version=$1
root=$(git rev-parse --show-toplevel)
scratch=$(mktemp -d)
trap 'git -C "$root" worktree remove --force "$scratch/source" 2>/dev/null; rm -rf "$scratch"' EXIT

git -C "$root" worktree add --quiet --detach "$scratch/source" "$version"
# The only change: tokens may live as long as the fixture is kept. The program reads the clock of the machine.
sed -i '/XAuthTTL\|SessionTTL\|\bTTL \|Idle /s/\(range:"[0-9a-z]*\.\.\)[0-9]*h"/\12400000h"/' \
	"$scratch/source/config/config.go"
(cd "$scratch/source" &&
	GOFLAGS='' CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$scratch/castellan" ./cmd/castellan)

cd "$root"
go test -count=1 -run '^TestUpgrade$' ./test/office -upgrade.program "$scratch/castellan" -upgrade.version "$version"
ls -l "test/office/testdata/upgrade/$version"
