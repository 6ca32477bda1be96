#!/bin/sh
# Makes sure that what the tests need beyond Go is on this machine, and installs
# it from the distribution (Debian, Ubuntu) where it is not. Where that cannot
# be, it says in one line what is missing and fails: tests are never skipped.
#
#   scripts/ensure-test-deps.sh postgresql chromium
set -eu

# The tests start servers of their own, so only the programs count. The order of
# the places is that of internal/pgtest.
has_postgresql() {
	[ -n "${CASTELLAN_TEST_POSTGRES:-}" ] && return 0
	if [ -n "${PG_BINDIR:-}" ]; then
		[ -x "$PG_BINDIR/initdb" ] && return 0
		echo "PG_BINDIR names a folder without PostgreSQL's server programs" >&2
		exit 1
	fi
	for initdb in /usr/lib/postgresql/*/bin/initdb; do
		[ -x "$initdb" ] && return 0
	done
	command -v initdb >/dev/null
}

has_chromium() {
	for browser in chromium chromium-browser google-chrome google-chrome-stable headless-shell; do
		command -v "$browser" >/dev/null && return 0
	done
	return 1
}

has_iproute2() {
	command -v ip >/dev/null || [ -x /usr/sbin/ip ]
}

# Node runs npm, and npm brings the Node that the linters of the documents need:
# Debian 12 has an older one.
has_nodejs() {
	command -v node >/dev/null
}

has_npm() {
	command -v npm >/dev/null
}

# The gateways that the tests put in front of the service.
has_nginx() {
	command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]
}

has_haproxy() {
	command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ]
}

has_caddy() {
	command -v caddy >/dev/null
}

# systemd-analyze judges the unit file; it runs without systemd.
has_systemd() {
	command -v systemd-analyze >/dev/null
}

# The pooler that the tests put in front of PostgreSQL.
has_pgbouncer() {
	command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ]
}

missing() {
	for package; do
		"has_$package" || printf '%s ' "$package"
	done
}

give_up() {
	echo "missing: ${need% }. $1; install the Debian package(s) of that name by hand and try again." >&2
	exit 1
}

need=$(missing "$@") || exit 1
[ -z "$need" ] && exit 0

command -v apt-get >/dev/null || give_up "There is no apt-get here"
as_root=
if [ "$(id -u)" -ne 0 ]; then
	sudo -n true 2>/dev/null || give_up "Installing needs root, and sudo is missing or asks for a password"
	as_root="sudo -n"
fi

apt() {
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >/dev/null
}

echo "installing ${need% } from Debian (once)"
# $need is a list of words. Package lists are fetched only if those here do not serve.
# shellcheck disable=SC2086
apt install -y --no-install-recommends $need 2>/dev/null ||
	{ apt update && apt install -y --no-install-recommends $need; } ||
	give_up "Installing with apt-get failed"

need=$(missing "$@")
[ -z "$need" ] || give_up "apt-get installed it, yet it is not found"
