#!/usr/bin/env bash
# A comment is a sentence, or names a thing: one that begins with "Of", "Those", "That" or "The same as" leaves its
# subject to the reader.
set -euo pipefail
cd "$(dirname "$0")/../.."

# Prints the first line of each such comment: one behind code, or one that no other line of comment precedes.
find_all() {
  # shellcheck disable=SC2016
  find runtime jinja grammar ranks server converter cli platforms examples tests schema -name '*.h' -o -name '*.cc' -o \
    -name '*.fbs' | sort | xargs awk '
    FNR == 1 { after_comment = 0 }
    { is_comment = /^[[:space:]]*\/\// }
    /(^|[[:space:]])\/\/ (Of|Those|That|The same (as|by|for|from|in|of|on|to|with)) / && !(is_comment && after_comment) {
      print FILENAME ":" FNR ":" $0
    }
    { after_comment = is_comment }'
}

found=$(find_all)
[ -n "$found" ] || exit 0
echo "These comments have no subject; they must say what they are about:"
echo "$found"
exit 1
