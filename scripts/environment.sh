# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# Where compilers and libraries are found, and how commands see them. Sourced by ./dev.

# The Debian architecture of a preset that builds for another processor with Debian's libraries.
architecture_of() {  # PRESET
  case $1 in aarch64|package-arm64) echo arm64 ;; armhf|package-armhf) echo armhf ;; esac
}

emulator_of() {  # ARCHITECTURE
  case $1 in arm64) echo aarch64 ;; armhf) echo arm ;; esac
}

# Without it, CMake prints many errors that do not name it. Sets $ndk.
need_ndk() {
  ndk=${ANDROID_NDK_HOME:-${ANDROID_NDK:-}}
  [ -f "$ndk/build/cmake/android.toolchain.cmake" ] ||
    die "there is no Android NDK in '$ndk': install one, of release 28 or later, from" \
        "developer.android.com/ndk/downloads, and run 'ANDROID_NDK_HOME=FOLDER ./dev build android-arm64'"
}

set_up() {  # [PRESET]
  [ "${1:-}" != android-arm64 ] || need_ndk
  local lists=("${native_lists[@]}") architecture
  architecture=$(architecture_of "${1:-}")
  [ "${1:-}" != demo ] || lists=("${cria_lists[@]}")
  if system_is_recent_debian; then
    tree=
    [ -z "$architecture" ] || lists+=(debian-cross-packages.txt)
    case ${1:-} in package-*) lists+=(debian-checking-packages.txt) ;; esac
    # shellcheck disable=SC2046
    install_packages $(packages "${lists[@]}")
  elif [ "${1:-}" = demo ]; then
    ensure_cria_tree
  else
    ensure_tree
  fi
  [ -z "$architecture" ] || ensure_sysroot "$architecture"
  export CCACHE_DIR=${CCACHE_DIR:-$cache/ccache} CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=${CCACHE_MAXSIZE:-5G}
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_PCH_EXTSUM=1
  # Tests run in other folders, so that the path must be whole.
  local data=${CRIA_TEST_DATA:-$root/../shared/data}
  if [ -d "$data" ]; then
    CRIA_TEST_DATA=$(cd "$data" && pwd)
    export CRIA_TEST_DATA
  fi
  export CRIA_REAL_MODELS=${CRIA_REAL_MODELS:-$cache/real-models}
}

# Replaces this script by a command that sees the compilers and libraries. The wrapper must survive Ctrl-C,
# which the command handles: otherwise the shell would continue while the command still runs.
become() {
  [ -n "$tree" ] || exec "$@"
  trap '' INT
  exec bwrap --die-with-parent --bind / / --dev-bind /dev /dev --ro-bind "$tree/usr" /usr \
    --bind /usr/local /usr/local \
    --ro-bind "$tree/etc/alternatives" /etc/alternatives \
    --ro-bind "$tree/etc/ld.so.cache" /etc/ld.so.cache \
    env --default-signal=INT "$@"
}

# Runs a command that sees the compilers and libraries.
inside() { (become "$@"); }
