#!/usr/bin/env bash
# The library's sentences name neither flags nor commands of the programs: apps would show them to people
# who have no command line. An Error has a Remedy for these, which cli/ and runtime/c_api/ put into words.
set -euo pipefail
cd "$(dirname "$0")/../.."

# What a string literal may hold all the same: a command of the shell, the producer's name in a model file, and
# a part of the names of split GGUF files.
allowed='ulimit -v|"cria-convert \{\}"|-of-'
flag='(^|[ "(])--?[a-z][a-z-]*'
command='cria(-convert| (bench|chat|eval|info|pack|perplexity|plan|run|template|tokenize))'
found=$(grep -rnE "\"([^\"\\]|\\\\.)*\"" --include='*.h' --include='*.cc' runtime jinja grammar ranks server converter platforms |
  grep -vE '^(runtime/c_api/remedy\.cc|[^:]*:[0-9]+: *(//|#))' |
  sed -E "s/ \/\/ .*//; s/\\\\\"//g; s/$allowed//g" |
  # What is between the quotes alone: the rest of the line is code.
  awk -F'"' '{ text = ""; for (i = 2; i <= NF; i += 2) text = text " " $i; print $1 "\"" text }' |
  grep -E "\"($flag|.*$flag|.*$command)" || true)
[ -z "$found" ] && exit
printf 'Sentences of the library name flags or commands; use a Remedy:\n%s\n' "$found"
exit 1
