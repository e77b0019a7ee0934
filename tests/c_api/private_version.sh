#!/usr/bin/env bash
# private_version.sh CMAKE SOURCE_DIR PROGRAM LIBRARY: fails unless the version of the private symbols changes if and only
# if a private header changes, and unless the loader refuses a program of another version.
set -euo pipefail
cmake=$1 source_dir=$2 program=$3 library=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

version() {
  "$cmake" -D VERSION=1.2.3 -D ROOT="$folder" -D "FOLDERS=runtime;grammar" -D INPUT="$source_dir/runtime/c_api/libcria_private.map.in" \
    -D OUTPUT="$folder/map" -P "$source_dir/runtime/c_api/make_private_map.cmake"
  grep -oE '^CRIA_PRIVATE_1\.2\.3_[0-9a-f]{16} ' "$folder/map"
}
expect_changed() {
  local now
  now=$(version)
  [ "$now" != "$before" ] || { echo "the version is still $now after this change: $1"; exit 1; }
  before=$now
}

cp -r "$source_dir/runtime" "$source_dir/grammar" "$folder"
before=$(version)
echo '// Another line.' >> "$folder/runtime/llm/engine.cc"
touch "$folder/runtime/llm/engine.h"
[ "$(version)" = "$before" ] || { echo "the version changes though no header does"; exit 1; }
for header in runtime/llm/engine.h runtime/llm/measure/perplexity.h runtime/include/cria/error.h grammar/matcher.h; do
  sed -i '0,/;$/s//; \/\/ changed/' "$folder/$header"
  expect_changed "$header"
done
echo > "$folder/runtime/core/another.h"
expect_changed "another header"
mv "$folder/runtime/core/another.h" "$folder/runtime/xnn/another.h"
expect_changed "a header in another folder"

# A library of a build with other headers.
private=$(grep -oaE 'CRIA_PRIVATE_[0-9.]+_[0-9a-f]{16}' "$library" | sort -u)
other=${private%????????????????}0123456789abcdef
mkdir "$folder/lib"
sed "s/$private/$other/" "$library" > "$folder/lib/libcria.so.0"
"$program" --version > /dev/null
if message=$(LD_PRELOAD="$folder/lib/libcria.so.0" "$program" --version 2>&1); then
  echo "a library of another build was accepted: $message"
  exit 1
fi
[[ "$message" == *"version \`$private' not found"* ]] || { echo "$message"; exit 1; }
