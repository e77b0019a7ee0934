#!/usr/bin/env bash
# A comment is a sentence, or names a thing: one that begins with "Of", "Those", "That" or "The same as" leaves its
# subject to the reader. There may be no more of these than there were when the rule was made; whoever rewrites some
# lowers the number.
set -euo pipefail
cd "$(dirname "$0")/../.."
most=191

# Prints the first line of each such comment: one behind code, or one that no other line of comment precedes.
find_all() {
  find runtime jinja grammar ranks server converter cli platforms examples tests schema -name '*.h' -o -name '*.cc' | sort | xargs awk '
    FNR == 1 { after_comment = 0 }
    { is_comment = /^[[:space:]]*\/\// }
    /(^|[[:space:]])\/\/ (Of|Those|That|The same (as|by|for|from|in|of|on|to|with)) / && !(is_comment && after_comment) {
      print FILENAME ":" FNR ":" $0
    }
    { after_comment = is_comment }'
}

found=$(find_all)
count=$(grep -c . <<<"$found" || true)
[ "$count" -gt "$most" ] || exit 0
echo "$count comments have no subject, more than the $most that there were; the new ones must say of what:"
echo "$found"
exit 1
