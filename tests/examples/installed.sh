#!/usr/bin/env bash
# installed.sh CMAKE BUILD_FOLDER ARGUMENTS…: installs the library into a folder of its own, moves that folder,
# and goes on with beside.sh there.
set -euo pipefail
cmake=$1 build=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for component in runtime dev; do
  "$cmake" --install "$build" --prefix "$scratch/first" --component "$component" >/dev/null
done
mv "$scratch/first" "$scratch/prefix"
"$(dirname "$0")/beside.sh" "$cmake" "$scratch/prefix" "$@"
