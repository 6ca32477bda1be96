#!/bin/sh
# Runs a command with its temporary files in memory if enough is free, and otherwise unchanged. A test run creates and
# removes thousands of databases, browser profiles and data folders. On a disk their files cost the kernel more time
# than the databases need for their work.
#
#   scripts/temp-in-memory.sh go test ./...
set -eu

memory=/dev/shm
need=$((6 * 1024 * 1024)) # KiB; a run of all tests has used 0.6 GiB

# Prints the lower of two free amounts in KiB: of the file system and of the machine.
room() {
	{
		df -Pk "$memory" | awk 'NR == 2 { print $4 }'
		awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo
	} | sort -n | head -n 1
}

# A container may have less memory than its machine; then the files stay on the disk.
limited() {
	for limit in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
		[ -r "$limit" ] && [ "$(awk '{ print ($1 != "max" && $1 < 2 ^ 50) }' "$limit")" = 1 ] && return 0
	done
	return 1
}

# Docker mounts the folder noexec, and some tests build a program in theirs.
usable() {
	[ -w "$memory" ] && [ -r /proc/meminfo ] && [ "$(room)" -ge "$need" ] && ! limited &&
		! grep -q " $memory .*noexec" /proc/mounts
}

usable || exec "$@"

# Remove the folders of runs that were killed.
for old in "$memory"/castellan-test.*; do
	kill -0 "${old##*.}" 2>/dev/null || rm -rf "$old" 2>/dev/null || :
done

folder=$memory/castellan-test.$$
trap 'rm -rf "$folder" || :' EXIT
trap 'exit 1' HUP INT TERM
rm -rf "$folder"
mkdir -m 755 "$folder"
# Go's build files stay on the disk, because they gain nothing in memory.
GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}} TMPDIR=$folder "$@"
