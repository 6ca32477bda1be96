#!/bin/sh
# Fails when a binary is larger than it should be, and says what usually did it.
#
#   scripts/size.sh bin/castellan
set -eu

# What the program has, rounded up. No other file names the number.
limit=47000000

size=$(wc -c <"$1")
if [ "$size" -gt "$limit" ]; then
	cat >&2 <<-END
		$1 has $size bytes, more than $limit.
		The usual cause is a new library that calls methods by names it learns at run time (reflect's
		MethodByName and Method, text/template): the linker then keeps every method of every type. Its name:
		  go build -tags grpcnotrace,nopgxregisterdefaulttypes -o /dev/null -ldflags=-dumpdep ./cmd/castellan 2>&1 |
		    grep '<ReflectMethod>'
	END
	exit 1
fi
