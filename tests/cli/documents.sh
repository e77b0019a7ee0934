#!/usr/bin/env bash
# documents.sh PROGRAM MANUAL COMPLETION [COMMAND…]: fails if the program's --help, or that of a command, has an
# option that the manual page lacks or that bash does not complete, or if the page has an option that the
# program lacks. The commands are those that --help lists, unless they are given; "serve" is a program of its own.
set -euo pipefail
program=$1 manual=$2 completion=$3
shift 3
here=$(dirname "$0")
commands=("$@")
if [ $# -eq 0 ]; then
  mapfile -t commands < <("$program" --help | sed -n '/^Subcommands:/,$s/^  \([a-z][a-z]*\) .*/\1/p' | grep -vx serve)
fi
failures=0
fail() { echo "$*"; failures=1; }

# The options at the beginning of the lines of standard input.
options_of_help() { grep -E '^ +-' | sed -E 's/^ +(-[a-z]+,)?(--[a-z-]+)?.*/\1\2/' | tr ',' '\n' | sed '/^$/d'; }
# The options in a manual page.
options_of_manual() { grep -E '^\.(It|Fl) ' "$1" | sed 's/\\-/-/g' | grep -oE 'Fl -?[a-z][a-z-]*' | sed 's/^Fl /-/'; }

known=$(options_of_manual "$manual" | sort -u)
all=
# The program's own help comes first, with no command.
for command in '' "${commands[@]}"; do
  options=$("$program" ${command:+"$command"} --help | options_of_help)
  [ -n "$options" ] || fail "no options in the help of $program $command"
  offered=$(PATH=$(dirname "$program"):$PATH bash "$here/completed.bash" "$completion" \
    "$(basename "$program")" ${command:+"$command"} -)
  all+=$options$'\n'
  for option in $options; do
    # The manual of a command tells of its help only once.
    grep -qxe "$option" <<<"$known" || fail "$manual lacks $option of $(basename "$program") $command"
    [[ $option != --* ]] || grep -qxe "$option" <<<"$offered" ||
      fail "$completion does not offer $option of $(basename "$program") $command"
  done
done
for option in $known; do
  case $option in -h|--help|--version) continue ;; esac
  grep -qxe "$option" <<<"$all" || fail "$manual tells of $option, which $(basename "$program") does not have"
done
exit $failures
