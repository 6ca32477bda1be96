#!/bin/sh
# Makes the pictures of docs/console-tour.md from the browser tests.
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
go test -count=1 -run '^TestConsole(Screens|Security|Approvals)$' -artifacts -outputdir "$out" ./test/console
picture() { # FROM TO: the first picture of that name
	from=$(find "$out" -path "*/$1.png" | sort | head -1)
	[ -n "$from" ] || { echo "no picture $1.png was made" >&2; exit 1; }
	cp "$from" "docs/pictures/console-$2.png"
}
picture light-en/_ home
picture console/firewall-rehearsed firewall
picture money/approval approval
picture console/roles roles
picture console/palette palette
picture light-en/_withdrawals withdrawals
picture light-en/_kyc kyc
picture console/audit audit
picture console/mfa-rehearsed mfa
picture light-en/_users users
picture dark-ar-phone/_withdrawals arabic
