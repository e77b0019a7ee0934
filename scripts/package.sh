# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# Packages, archives, and trying them. Sourced by ./dev.

# Makes the packages for one Debian architecture.
package_for() {  # ARCHITECTURE
  local preset=package-$1 folder=build/package-$1
  [ "$1" != amd64 ] || [ "$(uname -m)" = x86_64 ] || die "packages for amd64 are made on x86-64 only"
  set_up "$preset"
  # Configures again, because packages have the date of the last commit.
  rm -f "$folder/build.ninja"
  configure_and_build "$preset"
  rm -rf "$folder/packages"
  inside cpack --config "$folder/CPackConfig.cmake" >"$folder/cpack.log" ||
    { cat "$folder/cpack.log" >&2; die "cpack failed"; }
  rm -f build/packages/*_"$1".deb
  mv "$folder"/packages/*.deb build/packages/
  local tests=$root/tests/platforms/debian usr=/usr version archive
  version=$(sed -n 's/^project(cria VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
  archive=$root/build/packages/cria-$version-linux-$1.tar.gz
  [ "$1" = amd64 ] || usr=$CRIA_SYSROOT/usr
  rm -f build/packages/cria-*-linux-"$1".tar.gz
  inside "$root/platforms/archive/make_archive.sh" "$1" "$root/$folder" "$usr" "$demo_model" "$archive"
  inside env CRIA_DPKG_DATABASE="$tree/var/lib/dpkg" "$tests/check_packages.sh" "$1" "$root/build/packages"
  if [ "$1" = amd64 ]; then
    inside "$tests/build_beside.sh" "$root/build/packages" "$root"
    ensure_device "$1"
    # shellcheck disable=SC2016
    as_root unshare --mount bash -c 'for name in dev proc sys; do mount --rbind "/$name" "$2/$name"; done
      mount -t tmpfs tmpfs "$2/root" && "$0" "$1" "$2"' "$tests/try_archive.sh" "$archive" "$device"
  elif emulates_in_namespaces; then
    ensure_device "$1"
    as_root "$tests/try_on_device.sh" "$1" "$root/build/packages" "$root/demo/cria-demo" "$device" \
      "$tree/usr/bin/qemu-$(emulator_of "$1")"
  else
    say "not shown: that the packages of $1 install and run, for which a kernel of 6.7 or later is needed" \
      "that lets a user namespace mount binfmt_misc: $refusal"
  fi
}

command_package() {
  local architecture
  [ $# -gt 0 ] || set -- amd64 arm64 armhf
  for architecture; do
    case $architecture in
      amd64|arm64|armhf) ;;
      *) die "packages are made for amd64, arm64 and armhf, not for '$architecture'" ;;
    esac
  done
  cd "$root"
  mkdir -p build/packages
  set_up
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(inside git log -1 --format=%ct)}
  export SOURCE_DATE_EPOCH
  for architecture; do package_for "$architecture"; done
  say "$root/build/packages has the packages"
}
