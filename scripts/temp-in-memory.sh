#!/bin/sh
# Runs a command with its temporary files in memory, if the machine has the room; otherwise without a change. A test
# run creates and removes thousands of databases, browser profiles and data folders. Their files cost the kernel more
# time on a disk than the databases need for their work.
#
#   scripts/temp-in-memory.sh go test ./...
set -eu

memory=/dev/shm
need=$((6 * 1024 * 1024)) # KiB; a run of all tests needs about a third of it

# Prints the free KiB: the least of the file system, the machine and the container.
room() {
	{
		df -Pk "$memory" | awk 'NR == 2 { print $4 }'
		awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo
		awk '$1 != "max" { print int($1 / 1024) }' /sys/fs/cgroup/memory.max 2>/dev/null || true
	} | sort -n | head -n 1
}

# Docker mounts the folder noexec, and some tests build a program in theirs.
usable() {
	[ -w "$memory" ] && [ -r /proc/meminfo ] && ! grep -q " $memory .*noexec" /proc/mounts && [ "$(room)" -ge "$need" ]
}

usable || exec "$@"

# Of runs that were killed.
for old in "$memory"/castellan-test.*; do
	if [ -d "$old" ] && ! kill -0 "${old##*.}" 2>/dev/null; then
		rm -rf "$old"
	fi
done

folder=$memory/castellan-test.$$
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
mkdir -m 755 "$folder"
# The compiler's files are many, and are as fast where they were.
GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}} TMPDIR=$folder "$@"
