#!/bin/sh
# Plants 160 faults with a new seed and reports how many the tests catch that reach their lines (tools/mutate).
#
#   scripts/planted.sh [seed]
set -eu

seed=${1:-$(date +%j%H)}
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
go build -o "$programs/pgserve" ./internal/pgtest/cmd/pgserve
go -C tools build -o "$programs/mutate" ./mutate
plant() {
	"$programs/pgserve" "$programs/mutate" -root . -reach "$programs/reach.json" -n "$1" -seed "$seed" "$2"
}
echo "seed $seed"
plant 64 domain
plant 24 http/auth
plant 12 http/office/foureyes
plant 36 persistence
plant 24 console
