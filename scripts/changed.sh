#!/bin/sh
# Succeeds if a file changed whose path matches a regular expression (grep -E), and says in one line what decided it.
# A check that costs minutes and depends on few files runs behind it. With CHECK_ALL set, or with nothing to compare
# with, everything counts as changed.
#
#   scripts/changed.sh NAME PATTERN [EXCEPT] && expensive check
#   scripts/changed.sh -l PATTERN [EXCEPT]    the paths themselves
#
# Compared is with the main branch: with $BASE if it is set (a workflow knows what was pushed), otherwise with the point
# where this branch left origin/main or main. On the main branch itself it is the newest commit at least six hours older
# than the last one: a push is rarely older than that. Uncommitted changes count too.
set -eu

name=$1 pattern=$2 except=${3:-^$}
head=$(git rev-parse HEAD)
base=${BASE:-}
for main in origin/main main; do
	[ -n "$base" ] && break
	left=$(git merge-base HEAD "$main" 2>/dev/null) || continue
	[ "$left" = "$head" ] || base=$left
done
if [ -z "$base" ]; then
	before=$(($(git log -1 --format=%ct) - 6 * 3600))
	base=$(git log -1 --format=%H --before="@$before")
fi
[ -z "${CHECK_ALL:-}" ] || base=

matching() {
	{
		[ -n "$base" ] && git diff --name-only "$base" || git ls-files
		git ls-files --others --exclude-standard
	} | grep -E "$pattern" | grep -vE "$except"
}

if [ "$name" = -l ]; then
	matching
	exit
fi
if [ -z "$base" ]; then
	echo "$name: all is checked"
	exit 0
fi

first=$(matching | head -n 1)
short=$(git rev-parse --short "$base")
if [ -n "$first" ]; then
	echo "$name: runs, because $first changed since $short"
	exit 0
fi
echo "$name: left out, because nothing of it changed since $short (CHECK_ALL=1 runs it)"
exit 1
