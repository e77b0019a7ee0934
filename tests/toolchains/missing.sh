#!/usr/bin/env bash
# missing.sh [PRESET SYSROOT]: what a build says where something that it takes is missing: what, and the command
# that mends it, in one message with no other after it. PRESET and SYSROOT are of a build for another processor,
# which is tried without its emulator.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset CRIA_SYSROOT ANDROID_NDK_HOME ANDROID_NDK

# Runs a command that must fail; its words must be in the message, and the message the only one.
expect_message() {  # WORDS COMMAND…
  local words=$1
  shift
  if "$@" >"$folder/output" 2>&1; then
    echo "$*: did not fail"
    exit 1
  fi
  # CMake breaks lines.
  local output
  output=$(tr -s ' \n' ' ' <"$folder/output")
  if [[ $output != *"$words"* || $(grep -cE '^(CMake Error|dev:)' "$folder/output") != 1 ]]; then
    printf '%s: does not say "%s" alone, but:\n' "$*" "$words"
    cat "$folder/output"
    exit 1
  fi
}

configure() {  # PRESET [SETTINGS…]
  rm -rf "$folder/build"
  cmake --preset "$1" -B "$folder/build" "${@:2}"
}

for preset in aarch64 armhf; do
  expect_message "\`./dev build $preset\`" configure "$preset"
done
expect_message "\`ANDROID_NDK_HOME=FOLDER ./dev build android-arm64\`" configure android-arm64
expect_message "'ANDROID_NDK_HOME=FOLDER ./dev build android-arm64'" ./dev build android-arm64
# Nothing is looked for that is set to nothing.
expect_message "There is no libXNNPACK: run \`./dev build\`" configure release -DCRIA_xnnpack_LIBRARY=
mkdir -p "$folder/sysroot/usr/lib/aarch64-linux-gnu"
touch "$folder/sysroot/usr/lib/aarch64-linux-gnu/libc.so.6"
CRIA_SYSROOT=$folder/sysroot expect_message "aarch64-linux-gnu-g++ is not installed: run \`./dev build aarch64\`" \
  configure aarch64 -DCRIA_CROSS_CXX_COMPILER=
if [ $# = 2 ]; then
  CRIA_SYSROOT=$2 expect_message "is not installed: run \`./dev test $1\`, or install qemu-user" \
    configure "$1" -DCRIA_EMULATOR=
fi
