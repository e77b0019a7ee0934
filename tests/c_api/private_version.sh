#!/usr/bin/env bash
# private_version.sh CMAKE SOURCE_DIR PROGRAM LIBRARY NM COMPILER: fails unless the map of private symbols has exactly those
# that objects of programs need, unless their version changes if and only if a private header or these symbols change, and
# unless the loader refuses a program of another version.
set -euo pipefail
cmake=$1 source_dir=$2 program=$3 library=$4 nm=$5 compiler=$6
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

users=()
version() {
  "$cmake" -D VERSION=1.2.3 -D ROOT="$folder" -D "FOLDERS=runtime;grammar" -D NM="$nm" \
    -D USED_BY="$(IFS=';'; echo "${users[*]}")" -D DEFINED_BY="${users:+$folder/library.o}" -D OUTPUT="$folder/map" \
    -P "$source_dir/runtime/c_api/make_private_map.cmake"
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

# Exported is what one object uses and none defines, and the library does.
cat > "$folder/library.cc" <<'END'
namespace cria {
void Used() {}
int used_number = 1;
void UsedAndOwn() {}
void Unused() {}
}
namespace other {
void Used() {}
}
END
cat > "$folder/first.cc" <<'END'
namespace other { void Used(); }
namespace cria {
void Used();
void UsedAndOwn();
void OfNobody();
inline void Inline() { Used(); }
void First() { Inline(); UsedAndOwn(); OfNobody(); other::Used(); }
}
END
cat > "$folder/second.cc" <<'END'
namespace cria {
extern int used_number;
int UsedToo() { return used_number; }
void UsedAndOwn() {}
}
END
for name in library first second; do
  "$compiler" -O0 -c "$folder/$name.cc" -o "$folder/$name.o"
done
expect_symbols() {
  local found
  found=$(grep -oE '^ *_Z[^;]*' "$folder/map" | tr -d ' ' | sort | tr '\n' ' ')
  [ "$found" = "$1 " ] || { echo "the map has $found, not $1"; exit 1; }
}
users=("$folder/first.o")
expect_changed "a program that uses something"
expect_symbols "_ZN4cria10UsedAndOwnEv _ZN4cria4UsedEv"
users+=("$folder/second.o")
expect_changed "another object"
expect_symbols "_ZN4cria11used_numberE _ZN4cria4UsedEv"

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
