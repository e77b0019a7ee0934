#!/usr/bin/env bash
# exported_symbols.sh NM LIBRARY HEADER: fails unless the library exports exactly the functions that the header
# declares, apart from symbols for the program cria of the same build, which have a version of their own.
set -euo pipefail
nm=$1 library=$2 header=$3

declared=$(grep -E '^CRIA_API ' "$header" | grep -oE 'cria_[a-z_]+\(' | tr -d '(' | sort)
# A is the name of the library's version itself.
exported=$("$nm" -D --defined-only "$library" |
  awk '$2 != "A" && $3 !~ /@@CRIA_PRIVATE_/ { sub(/@@CRIA_0$/, "", $3); print $3 }' | sort)
# The version of those symbols has a hash of the private headers, so that the loader refuses a program of another build.
private=$("$nm" -D --defined-only "$library" | awk '$2 == "A" && $3 ~ /^CRIA_PRIVATE_/ { print $3 }')
[[ "$private" =~ ^CRIA_PRIVATE_[0-9.]+_[0-9a-f]{16}(@@.*)?$ ]] ||
  { echo "the version of private symbols is \"$private\", without a hash of headers"; exit 1; }
[ -n "$declared" ] || { echo "no declarations in $header"; exit 1; }
if ! difference=$(diff <(echo "$declared") <(echo "$exported")); then
  printf 'Declared in the header (<), exported by the library (>):\n%s\n' "$difference"
  exit 1
fi
