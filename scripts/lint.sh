# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# The format of sources, and what lint checks. Sourced by ./dev.

# Existing sources, tracked or new, each ended by a zero byte, relative to the root.
sources() {
  inside git ls-files -z -co --exclude-standard -- "$@" |
    while IFS= read -r -d '' path; do
      if [ -e "$path" ]; then printf '%s\0' "$path"; fi
    done
}

command_fmt() {
  set_up
  cd "$root"
  sources '*.cc' '*.h' 'server/*.js' 'tests/*.js' | inside xargs -0 clang-format -i
}

checked_sources=('runtime/*.cc' 'jinja/*.cc' 'grammar/*.cc' 'ranks/*.cc' 'server/*.cc' 'converter/*.cc' 'cli/*.cc'
  'platforms/*.cc')

# The checked sources whose code, or whose header's code, the newest COMMITS or the work tree changed. A
# file that only moved, or in which only comments and includes changed, is left out. In a shallow clone, the
# changes of the oldest commit are not known.
changed_sources() {  # COMMITS
  local first base
  first=$(inside git rev-list -n "$1" HEAD | tail -n 1)
  base=$(inside git rev-parse -q --verify "$first^") || base=$first
  inside git diff -M -U0 "$base" -- "${checked_sources[@]}" "${checked_sources[@]/%.cc/.h}" |
    awk '/^\+\+\+ / { path = substr($0, 7); sub(/\.h$/, ".cc", path); next }
         /^--- / || !/^[-+]/ { next }
         { sign = /^-/ ? -1 : 1; $0 = substr($0, 2); sub(/\/\/.*/, ""); gsub(/[[:space:]]/, "") }
         $0 != "" && !/^#include/ { changes[path, $0] += sign }
         END { for (key in changes) { split(key, parts, SUBSEP); if (changes[key]) print parts[1] } }' |
    sort -u |
    while IFS= read -r path; do
      if [ -e "$path" ]; then printf '%s\0' "$path"; fi
    done
}

command_lint() {  # [--since COMMITS]
  local list=(sources "${checked_sources[@]}") states=225000
  if [ $# -gt 0 ]; then
    [ "$1" = --since ] && [[ ${2:-} =~ ^[1-9][0-9]*$ ]] && [ $# -eq 2 ] ||
      die "lint takes nothing or '--since COMMITS', not '$*'"
    list=(changed_sources "$2")
    states=75000
  fi
  set_up
  cd "$root"
  sources '*.cc' '*.h' 'server/*.js' 'tests/*.js' | inside xargs -0 clang-format --dry-run --Werror
  inside "$root/tests/layout/check_includes.sh"
  inside "$root/tests/layout/check_comments.sh"
  (cd python && inside flake8 && inside mypy --cache-dir "$cache/lint/mypy" src tests examples generate_c_api.py)
  # clang-tidy wants the generated headers and the commands that compile the sources.
  configure_and_build dev cria_schema_generated cria_sentencepiece_proto >&2
  "${list[@]}" | inside "$root/tests/layout/clang_tidy.sh" "$root/build/dev" "${JOBS:-$(nproc)}" "$states" "$cache/lint"
  say "no findings"
}
