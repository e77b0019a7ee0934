#!/usr/bin/env bash
# make_wheel.sh ARCHITECTURE BUILD USR FOLDER: makes a Python wheel in FOLDER with the library of the folder BUILD and
# every library that it needs and that not each Linux has, from USR (the /usr of a tree or sysroot). With "source" alone
# in place of the first three, it makes the source distribution, which has no library.
set -euo pipefail
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "make_wheel: $*" >&2; exit 1; }
folder=${!#}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# The licences are at the top of the tree, but must be inside the package.
mkdir "$scratch/python"
cp -r "$sources"/python/{pyproject.toml,hatch_build.py,README.md,src,examples} "$sources/LICENSE" \
  "$sources/THIRD_PARTY_NOTICES.md" "$scratch/python"
find "$scratch/python" -name __pycache__ -prune -exec rm -rf {} +

build_package() { /usr/bin/python3 -m build --no-isolation --outdir "$folder" "$@" "$scratch/python" >"$scratch/log" ||
  { cat "$scratch/log" >&2; fail "building failed"; }; }

if [ "$1" = source ]; then
  build_package --sdist
  exit
fi
architecture=$1 build=$2 usr=$3
# shellcheck source=platforms/archive/add_libraries.sh
. "$(dirname "${BASH_SOURCE[0]}")/add_libraries.sh"
mkdir -p "$scratch/wheel/lib" "$scratch/wheel/licences"
add_library "$(readelf -d "$build/runtime/c_api/libcria.so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" \
  "$scratch/wheel" "$in_every_linux"
finish_libraries "$scratch/wheel"
install -m 644 "$sources/platforms/debian/copyright" "$scratch/wheel/licences/cria"
# PEP 600: the tag names the oldest C library that has every symbol. A C++ library that is as old has the symbols
# of GCC 13, which are the newest in use.
glibc=$(readelf -V "$scratch"/wheel/lib/* | grep -oE '\bGLIBC_[0-9]+\.[0-9]+' | sort -Vu | tail -n 1)
glibc=${glibc#GLIBC_}
export CRIA_WHEEL_CONTENTS=$scratch/wheel CRIA_WHEEL_PLATFORM=manylinux_${glibc/./_}_${triplet%%-*}
build_package --wheel
