#!/bin/sh
# Fails when a binary is larger than it should be, and says what usually did it.
#
#   scripts/size.sh bin/castellan
set -eu

limit=52000000 # 50 MB, half a megabyte for the guard (D-EXT-09 to 12), and 1.5 for sessions (D-AUTH-16 to 19)

size=$(wc -c <"$1")
if [ "$size" -gt "$limit" ]; then
	cat >&2 <<-END
		$1 has $size bytes, more than $limit.
		The usual cause is a new library that calls methods by names it learns at run time (reflect's
		MethodByName and Method, text/template): the linker then keeps every method of every type. Its name:
		  go build -tags grpcnotrace -o /dev/null -ldflags=-dumpdep ./cmd/castellan 2>&1 | grep '<ReflectMethod>'
	END
	exit 1
fi
