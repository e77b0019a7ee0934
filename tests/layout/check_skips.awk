# awk -v where="CONDITIONS" -v fails=BOOLEAN -f check_skips.awk tests/allowed_skips.txt RESULTS.xml LastTest.log
#
# Compares the tests that ctest skipped (its JUnit file) and those that programs of tests skipped (their lines
# "skipped: NAME: REASON" in its log) with the list of skips that are allowed under one of the conditions. Prints how
# many each row allowed, and those that none does; these are an error if `fails` is set.

function trimmed(text) {
  gsub(/^[ \t]+|[ \t]+$/, "", text)
  return text
}

# The regular expression of a pattern in which * stands for any text.
function expression(pattern) {
  gsub(/[][\\.^$+?(){}|]/, "\\\\&", pattern)
  gsub(/\*/, ".*", pattern)
  return "^" pattern "$"
}

function holds(conditions, n, i, parts) {
  n = split(conditions, parts, / +/)
  for (i = 1; i <= n; ++i) if (index(" " where " ", " " parts[i] " ")) return 1
  return 0
}

function note(name, reason) {
  if (!(name in reasons)) names[++num_names] = name
  if (!(name in reasons) || reasons[name] == "") reasons[name] = reason
}

FILENAME == ARGV[1] {
  if (/^[ \t]*(#|$)/) next
  if (split($0, fields, / \| /) != 3) {
    printf "dev: %s:%d: not of the form TEST | WHERE | WHY\n", FILENAME, FNR
    exit failed = 1
  }
  if (!holds(trimmed(fields[2]))) next
  ++num_rows
  rows[num_rows] = expression(trimmed(fields[1]))
  whys[num_rows] = trimmed(fields[3])
  next
}

FILENAME == ARGV[2] {
  # Tests that are not run there at all, with a reason in the list of tests/emulation/emulation.cmake.
  if (/report: not emulated: /) delete whole[name]
  if (!/<testcase .*status="notrun"/) next
  name = $0
  sub(/.*<testcase name="/, "", name)
  sub(/".*/, "", name)
  gsub(/&lt;/, "<", name); gsub(/&gt;/, ">", name); gsub(/&quot;/, "\"", name); gsub(/&amp;/, "\\&", name)
  whole[name]
  next
}

/^skipped: [^ ]+: / {
  name = $2
  sub(/:$/, "", name)
  reason = $0
  sub(/^skipped: [^ ]+: /, "", reason)
  note(name, reason)
  sub(/\..*/, "", name)
  tells[name]
}

END {
  if (failed) exit 1
  for (name in whole) {
    # A program of which all tests on an emulated core were skipped has told which they are.
    program = name
    sub(/@.*/, "", program)
    if (!(program in tells)) note(name, "")
  }
  for (i = 1; i <= num_names; ++i) {
    for (row = 1; row <= num_rows; ++row) if (names[i] ~ rows[row]) break
    if (row <= num_rows) {
      ++counts[row]
    } else {
      ++num_others
      printf "dev: skipped, but not in tests/allowed_skips.txt: %s%s\n", names[i],
        reasons[names[i]] == "" ? "" : ": " reasons[names[i]]
    }
  }
  for (row = 1; row <= num_rows; ++row) {
    if (row in counts) printf "dev: %d skipped: %s\n", counts[row], whys[row]
  }
  exit num_others > 0 && fails != "" && fails != "false"
}
