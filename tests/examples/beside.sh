#!/usr/bin/env bash
# beside.sh CMAKE PREFIX EXAMPLES MODEL [CMAKE_ARGUMENTS…]: builds and runs the examples beside the library in
# PREFIX, with CMake and with pkg-config. CC and CFLAGS serve the latter; RUNNER is a program, with
# arguments with | between them, that runs what was built.
set -euo pipefail
cmake=$1 prefix=$2 examples=$3 model=$4
shift 4
IFS='|' read -ra runner <<<"${RUNNER:-}"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo "installed:"
(cd "$prefix" && find . ! -type d | sort)

expect_answer() {  # COMMAND…
  local output
  output=$("${runner[@]}" "$@")
  printf '%s\n' "$output"
  # What it says is left to chance.
  [[ $output == *[a-z]* ]] || { echo "no answer from $1"; exit 1; }
}

package=$(find "$prefix" -name criaConfig.cmake -printf %h)
"$cmake" -S "$examples" -B "$scratch/build" -Dcria_DIR="$package" "$@" >"$scratch/log" ||
  { cat "$scratch/log"; exit 1; }
"$cmake" --build "$scratch/build" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
expect_answer "$scratch/build/example_chat_c" "$model" 'Hello! Who are you?'
expect_answer "$scratch/build/example_chat_cc" "$model" <<<$'Hello! Who are you?\nGoodbye!'

if ! command -v pkg-config >/dev/null; then
  echo 'skipped: pkg-config is not installed'
  exit 77
fi
PKG_CONFIG_PATH=$(find "$prefix" -name cria.pc -printf %h)
export PKG_CONFIG_PATH
libraries=$(pkg-config --variable=libdir cria)
# shellcheck disable=SC2046,SC2086
$CC ${CFLAGS:-} -o "$scratch/chat" "$examples/chat.c" $(pkg-config --cflags --libs cria) \
  -Wl,-rpath,"$libraries"
expect_answer "$scratch/chat" "$model" 'Hello! Who are you?'
