#!/usr/bin/env bash
# run_java.sh JAVA ARGUMENTS…: runs a program on a Java machine that checks every use of JNI. Fails if the program
# fails or a check reports something.
set -euo pipefail
java=$1
shift
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# Android has a method for the number of a FileDescriptor; here it is read from a private field.
"$java" -Xcheck:jni -Xmx256m --add-opens java.base/java.io=ALL-UNNAMED -Dfile.encoding=UTF-8 "$@" \
  2>&1 | tee "$output"
if grep -nE '^(WARNING|FATAL ERROR)|in native method' "$output"; then
  echo "-Xcheck:jni complains (see the lines above)"
  exit 1
fi
