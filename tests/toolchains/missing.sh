#!/usr/bin/env bash
# What a build for another processor says where something that it takes is missing: what, and the command
# that mends it, in one message with no other after it.
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

for preset in aarch64 armhf; do
  expect_message "\`./dev build $preset\`" cmake --preset "$preset" -B "$folder/build"
done
expect_message "\`ANDROID_NDK_HOME=FOLDER ./dev build android-arm64\`" \
  cmake --preset android-arm64 -B "$folder/build"
expect_message "'ANDROID_NDK_HOME=FOLDER ./dev build android-arm64'" ./dev build android-arm64
