#!/usr/bin/env bash
# Runs go build with a line that says how far it is. The first build compiles some 840 packages, which takes about two
# minutes on two cores; a later one compiles what changed, and prints nothing else.
#
#   scripts/build.sh -o bin/castellan ./cmd/castellan
set -euo pipefail

for last; do :; done
all=$(go list -deps "$last" 2>&1 | awk '
	/^go: downloading / { if (!d++) print "downloading the libraries" >"/dev/stderr"; next }
	{ n++ }
	END { print n }') || : # go build says what is wrong
# On a terminal the line is renewed; elsewhere there is one for each hundred packages.
[ -t 2 ] && renew=1 || renew=0
go build -v "$@" 2>&1 | awk -v all="$all" -v renew="$renew" '
	/^[a-z][^ :]*$/ {
		n++
		if (renew) printf "\rbuilding: %d of %d packages", n, all
		else if (n % 100 == 1) printf "building: %d of %d packages\n", n, all
		fflush()
		next
	}
	{ if (renew && n) print ""; print; fflush() }
	END { if (renew && n) print "" }' >&2
