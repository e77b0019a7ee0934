#!/usr/bin/env bash
# binary_size.sh PROGRAM MOST_BYTES: fails where the stripped program is larger. The number is pinned in
# tests/CMakeLists.txt, to be changed only on purpose.
set -euo pipefail
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
bytes=$(stat -c %s "$stripped")
echo "$(basename "$1"), stripped: $bytes bytes of at most $2"
[ "$bytes" -le "$2" ]
