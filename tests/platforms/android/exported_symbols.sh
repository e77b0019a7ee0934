#!/usr/bin/env bash
# exported_symbols.sh NM LIBRARY: fails unless the library shows JNI_OnLoad alone.
set -euo pipefail
exported=$("$1" -D --defined-only --format=just-symbols "$2")
echo "$2 shows: $exported"
[ "$exported" = JNI_OnLoad ]
