#!/usr/bin/env bash
# binary_size.sh STRIP FILE MOST_BYTES: fails where the stripped program or library is larger. The number is
# pinned in tests/CMakeLists.txt, to be changed only on purpose.
set -euo pipefail
strip=$1 file=$2 most=$3
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
"$strip" -o "$stripped" "$file"
bytes=$(stat -c %s "$stripped")
echo "$(basename "$file"), stripped: $bytes bytes of at most $most"
[ "$bytes" -le "$most" ]
