#!/bin/sh
# Gives the Go client the path under which "go get" finds it: the address of the repository, then /client. Write .git
# after the address of a server that does not answer ?go-get=1. Commit and push the change with the tag of the module.
#
#   scripts/client-path.sh github.com/example/castellan/client
set -eu

new=$1
cd "$(git rev-parse --show-toplevel)"
old=$(sed -n 's/^module //p' client/go.mod)
git grep -lF -e "$old" -- '*.go' '*.mod' Makefile scripts/quick.sh | while read -r file; do
	sed -i "s#\\(^\\|[^/A-Za-z0-9_.-]\\)$old\\b#\\1$new#g" "$file"
	case $file in *.go) gofmt -w "$file" ;; esac
done
if [ -f go.mod ]; then go mod tidy; fi
echo "next: git commit -am 'Name the client $new', git tag client/v$(cat VERSION), git push --tags origin HEAD"
