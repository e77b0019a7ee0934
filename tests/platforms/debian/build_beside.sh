#!/usr/bin/env bash
# build_beside.sh PACKAGES SOURCES: builds the examples with the library and the headers of the packages for amd64,
# and runs them with a model that the packages' converter makes.
set -euo pipefail
packages=$1 sources=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for package in cria-convert libcria0 libcria-dev; do
  dpkg-deb --extract "$packages/$package"_*_amd64.deb "$scratch/root"
done
"$scratch/root/usr/bin/cria-convert" "$sources/demo/cria-demo" -o "$scratch/demo.cria" >"$scratch/log"
export CC=cc CRIA_PACK_CACHE=$scratch/packed
"$sources/tests/examples/beside.sh" cmake "$scratch/root/usr" "$sources/examples" "$scratch/demo.cria" -G Ninja
