#!/usr/bin/env bash
# A test that needs data of others is skipped where there are none. One with data of the project's own must then test the
# same: the line of tests/allowed_skips.txt names it, and it must exist.
set -euo pipefail
cd "$(dirname "$0")/.."

exists() {  # NAME of a test or of a suite
  grep -rqE "^TEST(_F|_P)?\(.*\b$1\b|^class $1 : public .*Test" --include='*_test.cc' .
}

status=0
while IFS='|' read -r test _ why; do
  found=
  # shellcheck disable=SC2013
  for name in $(grep -oE '\b[A-Z][A-Za-z0-9]+\b' <<<"$why"); do
    if exists "$name"; then found=$name; fi
  done
  [ -n "$found" ] && continue
  echo "tests/allowed_skips.txt: ${test}is skipped without data of others, and its line names no test of our own"
  status=1
done < <(grep -F '| no-data |' allowed_skips.txt)
exit $status
