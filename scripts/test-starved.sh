#!/bin/sh
# Runs the tests again and again on a machine that is short of processors. In odd
# rounds four busy loops take most of two processors; in even rounds the tests have
# one processor. A test that knows how fast the machine is fails here.
#
#   scripts/test-starved.sh [rounds [packages]]
set -eu

rounds=${1:-10}
packages=${2:-./...}
here=$(dirname "$0")/..
cd "$here"
log=$(mktemp -d)
loops=

relax() {
	for loop in $loops; do
		kill "$loop" 2>/dev/null || :
	done
	loops=
}
trap relax EXIT
trap 'exit 130' INT TERM

failed=0
for round in $(seq "$rounds"); do
	began=$(date +%s)
	if [ $((round % 2)) -eq 1 ]; then
		how="four busy loops"
		run=
		for _ in 1 2 3 4; do
			sh -c 'while :; do :; done' &
			loops="$loops $!"
		done
	else
		how="one processor"
		run="taskset -c 0"
	fi
	verdict=passed
	# $run and $packages are lists of words.
	# shellcheck disable=SC2086
	$run go run ./internal/testrun $packages >"$log/$round" 2>&1 || verdict=FAILED
	relax
	echo "round $round of $rounds, $how: $verdict after $(($(date +%s) - began)) s ($log/$round)"
	if [ "$verdict" = FAILED ]; then
		failed=$((failed + 1))
		grep -E '^ *--- FAIL|^FAIL|^panic' "$log/$round" || :
	fi
done
echo "$failed of $rounds rounds failed"
[ "$failed" -eq 0 ]
