#!/usr/bin/env bash
# Runs clang-tidy on the sources whose paths, relative to the working folder and each ended by a zero byte, are
# on standard input. BUILD is the path of a build folder that compiles each source by itself; sources that it does
# not compile are for another processor and left out.
#
# Parsing headers takes most of clang-tidy's time. So sources that are compiled by the same command are joined into
# one file and checked together. They are not included by that file, because clang's analyzer would not look at their
# functions. A source that includes itself for every instruction set, as Highway's macros do, is checked alone.
#
# STATES bounds how many states the analyzer looks at in one function. With clang's own bound of 225,000, it takes
# three quarters of the time. CLEAN is a folder that remembers which files, as the preprocessor made them, had no
# findings: those are not checked again.
set -euo pipefail

build=$1  # BUILD JOBS STATES CLEAN
jobs=$2
states=$3
clean=$4
max_joined=8

joined=$build/joined-sources
rm -rf "$joined"
mkdir "$joined"

# CMake writes one line for the command of a source and then one for its path. The file "origins" says where each
# source begins in a joined file.
awk -v root="$PWD" -v build="$build" -v folder="$joined" -v max_joined="$max_joined" '
  FNR == NR { checked[root "/" $0] = 1; next }
  /^  "command": / { command = $0; sub(/^  "command": "/, "", command); sub(/ -o [^ ]* -c .*/, "", command) }
  /^  "file": / {
    path = $2
    gsub(/[",]/, "", path)
    if (!(path in checked)) next
    delete checked[path]  # Other targets may compile it, too.
    num_own_lines = includes_itself = 0
    while ((getline line < path) > 0) {
      own_lines[++num_own_lines] = line
      if (line ~ /^#define HWY_TARGET_INCLUDE/) includes_itself = 1
    }
    close(path)
    if (!(command in file) || count[command] == max_joined || includes_itself) {
      file[command] = folder "/" ++num_files ".cc"
      count[command] = num_lines[command] = 0
      commands[num_files] = command
    }
    count[command] = includes_itself ? max_joined : count[command] + 1
    print file[command], num_lines[command], substr(path, length(root) + 2) > folder "/origins"
    for (i = 1; i <= num_own_lines; ++i) print own_lines[i] > file[command]
    num_lines[command] += num_own_lines
  }
  END {
    database = folder "/compile_commands.json"
    print "[" > database
    for (i = 1; i <= num_files; ++i) {
      path = folder "/" i ".cc"
      printf "{\"directory\": \"%s\", \"command\": \"%s -c %s\", \"file\": \"%s\"}%s\n", build, commands[i], path,
             path, i < num_files ? "," : "" > database
      command = commands[i]
      gsub(/\\"/, "\"", command)  # As JSON writes it.
      gsub(/\\\\/, "\\", command)
      print command " -E -C " path > folder "/" i ".preprocess"
    }
    print "]" > database
  }' <(tr '\0' '\n') "$build/compile_commands.json"
[ -e "$joined/origins" ] || exit 0

mkdir -p "$clean"
find "$clean" -type f -mtime +30 -delete

# Checks one joined file unless it is known to have no findings.
check() {  # FILE
  local key
  # Comments count, because they can turn checks off; paths of the checkout do not.
  key=$({ clang-tidy --version; cat .clang-tidy; echo "$states"; sed "s#$PWD/##g" "${1%.cc}.preprocess"
          cd "$build" && sh "${1%.cc}.preprocess" | sed "s#$PWD/##g; s#$root/##g"; } | sha256sum | cut -c1-32)
  if [ -e "$clean/$key" ]; then
    touch "$clean/$key"
    return
  fi
  clang-tidy -p "$joined" --quiet --extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang \
    --extra-arg=max-nodes="$states" "$1" >"$1.findings" || { cat "$1.findings"; return 1; }
  if [ -s "$1.findings" ]; then cat "$1.findings"; else touch "$clean/$key"; fi
}
export -f check
export root=$PWD build joined states clean

# Findings name the sources instead of the joined files.
# shellcheck disable=SC2016
find "$joined" -name '*.cc' -print0 | xargs -0 -P "$jobs" -n 1 bash -euo pipefail -c 'check "$0"' |
  awk -v origins="$joined/origins" '
    BEGIN {
      while ((getline line < origins) > 0) {
        split(line, part, " ")
        first[part[1], ++num[part[1]]] = part[2]
        name[part[1], num[part[1]]] = part[3]
      }
    }
    {
      split($0, part, ":")
      for (i = num[part[1]]; i > 0; --i) {
        if (part[2] > first[part[1], i] + 0) {
          $0 = name[part[1], i] ":" part[2] - first[part[1], i] substr($0, length(part[1] ":" part[2]) + 1)
          break
        }
      }
      print
    }'
