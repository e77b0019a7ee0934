#!/usr/bin/env bash
# run_java.sh JAVA ARGUMENTS…: runs a program on a Java machine that checks every use of JNI, and fails
# where the program does or a check has something to say.
set -euo pipefail
java=$1
shift
output=$(mktemp)
trap 'rm -f "$output"' EXIT
# FileDescriptor's number, which Android tells, has to be read from a private field here.
"$java" -Xcheck:jni -Xmx256m --add-opens java.base/java.io=ALL-UNNAMED -Dfile.encoding=UTF-8 "$@" \
  2>&1 | tee "$output"
if grep -nE '^(WARNING|FATAL ERROR)|in native method' "$output"; then
  echo "-Xcheck:jni complains (see the lines above)"
  exit 1
fi
