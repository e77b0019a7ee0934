#!/usr/bin/env bash
# make_archive.sh ARCHITECTURE BUILD USR DEMO_MODEL ARCHIVE: makes ARCHIVE, a .tar.gz for users who neither compile nor
# install: the program cria of the folder BUILD, every library that it needs and that not each system of Debian has,
# from USR (the /usr of a tree or sysroot), and the demo model. It runs from any folder, on Debian 13 and newer.
set -euo pipefail
architecture=$1 build=$2 usr=$3 demo_model=$4 archive=$5
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
fail() { echo "make_archive: $*" >&2; exit 1; }

# Libraries that each system of Debian has; dpkg and grep need those of md and pcre2.
in_every_debian='^(libc|libm|libstdc\+\+|libgcc_s|libtinfo|libmd|libpcre2-8|ld-linux[a-z0-9-]*)\.so'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
name=$(basename "$archive" .tar.gz)
folder=$scratch/$name
mkdir -p "$folder/lib" "$folder/licences"

case $architecture in
  amd64) triplet=x86_64-linux-gnu ;;
  arm64) triplet=aarch64-linux-gnu ;;
  armhf) triplet=arm-linux-gnueabihf ;;
  *) fail "no archives are made for $architecture" ;;
esac
strip=$(command -v "$triplet-strip" || fail "there is no $triplet-strip")

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }  # FILE

# Copies a library, its licence, and the libraries that it needs.
add_library() {  # NAME
  local library=$1 found licence package needs
  if [[ $library =~ $in_every_debian ]] || [ -e "$folder/lib/$library" ]; then return; fi
  found=$usr/lib/$triplet/$library
  [ "$library" != libcria.so.0 ] || found=$build/runtime/c_api/libcria.so.0
  [ -e "$found" ] || fail "there is no $found"
  install -m 644 "$found" "$folder/lib/$library"
  if [ "$library" != libcria.so.0 ]; then
    # Debian names the package of a library after its file: libXNNPACK.so.0.2 is in libxnnpack0.2, libpcre2-8.so.0 in
    # libpcre2-8-0, and a library whose times became 64 bits wide in one that ends with t64.
    package=$(tr '[:upper:]' '[:lower:]' <<<"${library%%.so.*}")
    [[ $package != *[0-9] ]] || package=$package-
    package=$package${library#*.so.}
    licence=
    for found in "$usr/share/doc/$package/copyright" "$usr/share/doc/${package}t64/copyright"; do
      [ ! -e "$found" ] || licence=$found
    done
    [ -n "$licence" ] || fail "$library has no licence in $usr/share/doc/$package"
    install -m 644 "$licence" "$folder/licences/${library%%.so.*}"
  fi
  for needs in $(needed "$folder/lib/$library"); do add_library "$needs"; done
}

install -m 755 "$build/cli/cria" "$folder/cria"
for library in $(needed "$folder/cria"); do add_library "$library"; done
"$strip" "$folder/cria" "$folder"/lib/*
# The loader looks for libraries beside the program first.
patchelf --set-rpath '$ORIGIN/lib' "$folder/cria"
for library in "$folder"/lib/*; do patchelf --set-rpath '$ORIGIN' "$library"; done

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
tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" -c "$name" |
  gzip -9n >"$archive"
