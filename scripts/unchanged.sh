#!/bin/sh
# Runs a command that writes generated files and fails if it changed anything,
# which means that somebody changed a source and not what is made from it. What
# was already changed before is left out, so it also serves while working.
#
#   scripts/unchanged.sh make generate golden
set -eu

state() {
	git diff HEAD
	git ls-files --others --exclude-standard -z | xargs -0 -r sha256sum
}

if ! git rev-parse --quiet --verify HEAD >/dev/null; then
	echo "$0: this is no git checkout with a commit: cannot tell what changed" >&2
	exit 1
fi

before=$(mktemp) after=$(mktemp)
trap 'rm -f "$before" "$after"' EXIT
state >"$before"
"$@"
state >"$after"
if ! cmp -s "$before" "$after"; then
	echo "these files were not up to date; review and commit what is now on the disk:" >&2
	diff "$before" "$after" | head -n 100 >&2 || true
	exit 1
fi
