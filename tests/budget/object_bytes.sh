#!/usr/bin/env bash
# object_bytes.sh SIZE ARCHIVE MAX_BYTES: fails if the code and constants in the archive's objects are larger, before the
# linker leaves out what nobody calls. The sizes are in CMakeLists.txt beside this script; they are changed only on
# purpose.
set -euo pipefail
size=$1 archive=$2 max=$3
bytes=$("$size" -t "$archive" | awk '$NF == "(TOTALS)" { print $1 + $2 }')
echo "$(basename "$archive"): $bytes bytes of at most $max"
[ "$bytes" -gt 0 ] && [ "$bytes" -le "$max" ]
