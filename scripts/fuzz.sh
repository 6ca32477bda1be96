#!/bin/sh
# Fuzzes every target of the project for a time, one after the other: scripts/fuzz.sh 10s
# An input that breaks one is kept in testdata/fuzz of its package: commit it with the mend.
set -eu

for place in $(grep -rlE --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do
	for target in $(grep -hoE '^func Fuzz[A-Za-z]+' "$place"/*_test.go | cut -d' ' -f2 | sort -u); do
		echo "== $place $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$1" "$place"
	done
done
