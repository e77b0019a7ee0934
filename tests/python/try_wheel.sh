#!/usr/bin/env bash
# try_wheel.sh WHEEL MODEL PYTHON: unpacks a wheel, checks that its libraries are complete and that its tag is theirs, and
# asks MODEL by the command PYTHON, which may have an emulator before it.
# try_wheel.sh SOURCE_DISTRIBUTION MODEL LIBRARY: makes a wheel without a library of it, and tries that with LIBRARY.
set -euo pipefail
package=$1 model=$2 how=$3
max_bytes=2400000  # Of a wheel; change it only on purpose.
name=$(basename "$package")
fail() { echo "$name: failed: $*"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python=(python3)
# Answers with nothing of the environment but the modules and, if it is given, the library.
ask() {  # FOLDER [VARIABLE]
  local answer
  # shellcheck disable=SC2016
  answer=$(env -i PATH=/usr/bin:/bin PYTHONPATH="$1" "${@:2}" "${python[@]}" -c 'import sys, cria
with cria.Model(sys.argv[1]) as model:
    print(model.chat([{"role": "user", "content": "Hello! Who are you?"}], temperature=0).read())
    for line in open("/proc/self/maps"):
        if "/lib" in line and "r-xp" in line: print(line.split()[-1])' "$model") || fail "the answer"
  [[ $answer == 'Hello! I am Cria'* ]] || fail "it does not answer as it should: $answer"
  # Where libcria.so and the libraries beside it came from.
  grep '^/' <<<"$answer" | grep -E 'lib(cria|XNNPACK)' >"$scratch/loaded"
  echo "$name: ${answer%%$'\n'*}"
}

if [[ $package == *.tar.gz ]]; then
  tar -C "$scratch" -xzf "$package"
  ! find "$scratch" -name '*.so*' | grep . || fail "it has a library"
  # Like pip, which has no variables for a wheel with a library.
  (cd "$scratch"/cria-* && /usr/bin/python3 -m build --no-isolation --wheel --outdir "$scratch/made" >"$scratch/log" 2>&1) ||
    { cat "$scratch/log"; fail "building a wheel"; }
  made=$(echo "$scratch"/made/*)
  [[ $made == *-py3-none-any.whl ]] || fail "it makes $made"
  /usr/bin/python3 -m zipfile -e "$made" "$scratch/installed"
  ask "$scratch/installed" CRIA_LIBRARY="$how"
  grep -qF "$(realpath "$how")" "$scratch/loaded" || fail "it did not load $how"
  exit
fi

bytes=$(stat -c %s "$package")
echo "$name: $bytes bytes of at most $max_bytes"
[ "$bytes" -le "$max_bytes" ] || fail "that is more than the maximum"
/usr/bin/python3 -m zipfile -e "$package" "$scratch/installed"
libraries=$scratch/installed/cria/lib
for library in "$libraries"/*; do
  for needed in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    [ -e "$libraries/$needed" ] || [[ $needed =~ ^(libc|libm|libstdc\+\+|libgcc_s|ld-linux[a-z0-9-]*)\.so ]] ||
      fail "${library##*/} needs $needed, which is not in the wheel"
  done
  readelf -V "$library" | { grep -oE '\bGLIBC_[0-9.]+' || true; } >>"$scratch/versions"
  readelf -d "$library" | grep -qE 'RUNPATH.*\[\$ORIGIN\]' || fail "${library##*/} does not look for libraries beside it"
  [ "$library" = "$libraries/libcria.so.0" ] || [ -e "$scratch/installed/cria/licences/$(basename "${library%%.so.*}")" ] ||
    fail "${library##*/} has no licence"
done
newest=$(sort -Vu "$scratch/versions" | tail -n 1)
tag=${newest/GLIBC_/manylinux_}
[[ $name == *-py3-none-${tag/./_}_* ]] || fail "its libraries need $newest"
grep -qx 'Root-Is-Purelib: false' "$scratch"/installed/cria-*.dist-info/WHEEL || fail "it says that it has no library"
for file in LICENSE THIRD_PARTY_NOTICES.md; do
  [ -s "$(echo "$scratch"/installed/cria-*.dist-info/licenses/"$file")" ] || fail "it has no $file"
done
[ -e "$scratch/installed/cria/py.typed" ] || fail "it has no py.typed"
read -ra python <<<"$how"
ask "$scratch/installed"
while read -r loaded; do
  [[ $loaded == "$libraries"/* ]] || fail "it loaded $loaded"
done <"$scratch/loaded"
