#!/bin/sh
# Runs govulncheck, which is given as the command, and says what its answer means. It fails for a vulnerability in code
# that is called, and for any fault of its own. Where the database of vulnerabilities cannot be reached, it says that
# nothing was checked, and does not fail: a build without the internet goes on, and nobody takes that for a pass.
#
#   scripts/vulnerabilities.sh go tool -modfile=tools/go.mod govulncheck ./...
set -eu

status=0
out=$("$@" 2>&1) || status=$?
case $status in
0)
	echo "govulncheck: checked, no vulnerability in code that is called"
	exit 0
	;;
esac
case $out in
*"fetching vulnerabilities: "*)
	echo "govulncheck: NOT CHECKED: the database of vulnerabilities cannot be reached" >&2
	echo "$out" | tail -n 1 >&2
	exit 0
	;;
esac
echo "$out" >&2
exit 1
