#!/usr/bin/env bash
# make_archive.sh ARCHITECTURE BUILD USR DEMO_MODEL ARCHIVE: makes ARCHIVE, a .tar.xz for users who neither compile nor
# install: the program cria of the folder BUILD, every library that it needs and that not each system of Debian has,
# from USR (the /usr of a tree or sysroot), and the demo model. It runs from any folder, on Debian 13 and newer.
set -euo pipefail
architecture=$1 build=$2 usr=$3 demo_model=$4 archive=$5
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "make_archive: $*" >&2; exit 1; }

# shellcheck source=platforms/archive/add_libraries.sh
. "$(dirname "${BASH_SOURCE[0]}")/add_libraries.sh"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
name=$(basename "$archive" .tar.xz)
folder=$scratch/$name
mkdir -p "$folder/lib" "$folder/licences"

install -m 755 "$build/cli/cria" "$folder/cria"
for library in $(needed "$folder/cria"); do add_library "$library" "$folder" "$in_every_debian"; done
finish_libraries "$folder"
"$strip" "$folder/cria"
# The loader looks for libraries beside the program first.
patchelf --set-rpath '$ORIGIN/lib' "$folder/cria"

install -m 644 "$demo_model" "$folder/demo.cria"
install -m 644 "$sources/LICENSE" "$sources/THIRD_PARTY_NOTICES.md" "$folder"
install -m 644 "$sources/platforms/debian/copyright" "$folder/licences/cria"
cat >"$folder/README" <<'TEXT'
Cria chats with a language model on this machine, without a network:

    ./cria chat -m demo.cria

The demo model answers questions about itself and about Cria, and little else. `./cria --help` lists the commands.
This program runs on Debian 13, Raspberry Pi OS 13 and newer, from any folder. The folder `licences` has the licences
of the libraries in `lib`.
TEXT
# With a dictionary as large as the archive, unpacking takes 9 MB of memory; xz by itself would take 65.
tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -c "$name" |
  xz --threads=1 --lzma2=preset=9e,dict=8MiB >"$archive"
