#!/bin/sh
# Runs gosec over what is shipped, in the folders in which a Go file changed (scripts/changed.sh). A finding is mended,
# or its line says why it is none (#nosec RULE: why). Left out are what only tests and measures (internal, and packages
# named …test), the made-up platform of cmd/demo, examples, generated code, and these rules:
#
#   G104  an error that is not looked at: writes to hashes and buffers, which cannot fail, and closing what was read
#   G115  numbers that lose bits: lengths, shares and wire formats whose bounds stand where they are read; gosec does
#         not see those, and names more than a hundred places
#   G304  files named by variables: the operator names them in settings and on the command line, no request does
set -eu
set -- '\.go$' '_test\.go$|^(internal|tools|examples|test|cmd/demo)/|[a-z]test/[^/]*$'
scripts/changed.sh gosec "$@" || exit 0
folders=$(scripts/changed.sh -l "$@" | xargs dirname | sort -u | while read -r of; do
	[ ! -d "$of" ] || echo "./$of"
done)
# shellcheck disable=SC2086
[ -z "$folders" ] || exec go tool -modfile=tools/go.mod gosec -quiet -exclude=G104,G115,G304 -exclude-generated $folders
