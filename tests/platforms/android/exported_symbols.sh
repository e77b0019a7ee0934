#!/usr/bin/env bash
# exported_symbols.sh NM LIBRARY: fails unless the library exports only JNI_OnLoad.
set -euo pipefail
exported=$("$1" -D --defined-only --format=just-symbols "$2")
echo "$2 exports: $exported"
[ "$exported" = JNI_OnLoad ]
