# shellcheck shell=bash disable=SC2154  # The scripts that source this set architecture, build, usr and fail.
# Libraries beside what needs them, for archives and Python wheels.

# Libraries that each system of Debian has; dpkg and grep need those of md and pcre2.
in_every_debian='^(libc|libm|libstdc\+\+|libgcc_s|libtinfo|libmd|libpcre2-8|ld-linux[a-z0-9-]*)\.so'
# Of these, what other distributions have, too: PEP 600 allows a wheel to need them.
in_every_linux='^(libc|libm|libstdc\+\+|libgcc_s|ld-linux[a-z0-9-]*)\.so'

case $architecture in
  amd64) triplet=x86_64-linux-gnu ;;
  arm64) triplet=aarch64-linux-gnu ;;
  armhf) triplet=arm-linux-gnueabihf ;;
  *) fail "nothing is made for $architecture" ;;
esac
strip=$(command -v "$triplet-strip" || fail "there is no $triplet-strip")

needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }  # FILE

# Copies a library into FOLDER/lib, its licence into FOLDER/licences, and the libraries that it needs, unless their names
# match PRESENT.
add_library() {  # NAME FOLDER PRESENT
  local library=$1 folder=$2 present=$3 found licence package needs
  if [[ $library =~ $present ]] || [ -e "$folder/lib/$library" ]; then return; fi
  found=$usr/lib/$triplet/$library
  [[ $library != libcria.so.* ]] || found=$build/runtime/c_api/$library
  [ -e "$found" ] || fail "there is no $found"
  install -m 644 "$found" "$folder/lib/$library"
  if [[ $library != libcria.so.* ]]; then
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
  for needs in $(needed "$folder/lib/$library"); do add_library "$needs" "$folder" "$present"; done
}

# Strips what was added, and lets each library find the others beside it.
finish_libraries() {  # FOLDER
  local library
  "$strip" "$1"/lib/*
  for library in "$1"/lib/*; do patchelf --set-rpath '$ORIGIN' "$library"; done
}
