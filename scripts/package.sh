# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# Packages, archives, and trying them. Sourced by ./dev.

project_version() { sed -n 's/^project(cria VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt; }

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
  version=$(project_version)
  archive=$root/build/packages/cria-$version-linux-$1.tar.xz
  [ "$1" = amd64 ] || usr=$CRIA_SYSROOT/usr
  rm -f build/packages/cria-*-linux-"$1".tar.*
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

# Makes Python wheels for 64-bit processors, and the source distribution.
package_python() {
  local architecture folder usr=/usr python=python3 architectures=(arm64) source emulated_python
  [ "$(uname -m)" != x86_64 ] || architectures=(amd64 arm64)
  source=$root/build/packages/cria-$(project_version).tar.gz
  rm -f build/packages/cria-*.whl "$source"
  for architecture in "${architectures[@]}"; do
    folder=$root/build/package-$architecture
    set_up "package-$architecture"
    configure_and_build "package-$architecture" cria_shared
    [ "$architecture" = amd64 ] || usr=$CRIA_SYSROOT/usr
    if [ "$architecture" = arm64 ] && [ "$(uname -m)" = x86_64 ]; then
      ensure_python arm64
      python="qemu-$(emulator_of arm64) -L $emulated_python $emulated_python/usr/bin/python3"
    fi
    inside "$root/platforms/archive/make_wheel.sh" "$architecture" "$folder" "$usr" "$root/build/packages"
    inside "$root/tests/python/try_wheel.sh" "$(wheel_for "$architecture")" "$demo_model" "$python"
  done
  inside "$root/platforms/archive/make_wheel.sh" source "$root/build/packages"
  [ "${#architectures[@]}" = 1 ] ||
    inside "$root/tests/python/try_wheel.sh" "$source" "$demo_model" "$root/build/package-amd64/runtime/c_api/libcria.so"
}

wheel_for() {  # ARCHITECTURE
  case $1 in
    amd64) echo "$root"/build/packages/cria-*_x86_64.whl ;;
    arm64) echo "$root"/build/packages/cria-*_aarch64.whl ;;
  esac
}

command_package() {
  local kind
  [ $# -gt 0 ] || set -- amd64 arm64 armhf python
  for kind; do
    case $kind in
      amd64|arm64|armhf|python) ;;
      *) die "packages are made for amd64, arm64, armhf and python, not for '$kind'" ;;
    esac
  done
  cd "$root"
  mkdir -p build/packages
  set_up
  SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(inside git log -1 --format=%ct)}
  export SOURCE_DATE_EPOCH
  for kind; do
    case $kind in python) package_python ;; *) package_for "$kind" ;; esac
  done
  say "$root/build/packages has the packages"
}
