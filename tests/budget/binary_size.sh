#!/usr/bin/env bash
# binary_size.sh STRIP FILE MAX_BYTES: fails if the stripped program or library is larger. The sizes are in
# CMakeLists.txt beside this script; they are changed only on purpose.
set -euo pipefail
strip=$1 file=$2 max=$3
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
"$strip" -o "$stripped" "$file"
bytes=$(stat -c %s "$stripped")
echo "$(basename "$file"), stripped: $bytes bytes of at most $max"
[ "$bytes" -le "$max" ]
