# Where Debian's compilers and libraries come from; sourced by ./dev, which has say, die, root and cache.
#
# On Debian 13 and newer, they are the system's own packages. On any other system, they are in a private
# tree, whose /usr is mounted over the host's. Libraries of another architecture are in a sysroot, which is
# the same on both. Trees and sysroots are kept in the cache; their names contain a hash of the list of packages.

suite=trixie
exit_mirror_is_updated=75  # A failure that will pass, as in sysexits.h.
toolchains=$root/toolchains

# Prints the packages in the lists with these names.
packages() { (cd "$toolchains" && sed -e 's/#.*//' "$@") | tr -s ' \t\n' '\n' | sed '/^$/d'; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "need root for: $* (run it as root, or install sudo)"
  fi
}

# Installs the packages that are missing from the running system.
install_packages() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing ${missing[*]}"
  as_root apt-get update -qq </dev/null >&2 || die "apt-get update failed (see above)"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" </dev/null >&2 || die "installing ${missing[*]} failed (see above)"
}

# True on Debian 13 or later, or a derivative with the same version numbers.
system_is_recent_debian() {
  [ "${CRIA_FORCE_TREE:-}" = 1 ] && return 1
  local id='' version=''
  # shellcheck disable=SC1091
  [ -r /etc/os-release ] && id=$(. /etc/os-release; echo "${ID:-}") &&
    version=$(. /etc/os-release; echo "${VERSION_ID:-}")
  case $id in
    # Testing and unstable have no version, and are newer.
    debian|raspbian) [ -z "$version" ] || [ "${version%%.*}" -ge 13 ] 2>/dev/null ;;
    *) return 1 ;;
  esac
}

need_mmdebstrap() {  # PROGRAMS…
  local program missing=()
  for program in "$@"; do
    command -v "$program" >/dev/null || missing+=("$program")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null ||
    die "this system is neither Debian nor has mmdebstrap; install mmdebstrap and bubblewrap"
  install_packages mmdebstrap bubblewrap
}

# Removes a folder that a killed process may have left with the host's /sys and /proc mounted in it.
remove_unfinished() {  # FOLDER
  local mounted
  tac /proc/self/mountinfo | while read -r _ _ _ _ mounted _; do
    mounted=$(printf '%b' "$mounted")
    if [[ $mounted == "$1"/* ]]; then as_root umount "$mounted"; fi
  done
  as_root rm -rf --one-file-system "$1"
}

# Makes a folder of the cache unless it exists; only once, even if several processes need it at the same time.
make_in_cache() {  # FOLDER WHAT FUNCTION, which fills the folder that it is given
  local folder=$1 what=$2 fill=$3
  if [ -d "$folder/usr" ]; then
    touch "$folder.log" 2>/dev/null || true  # When it was last used.
    return
  fi
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  if [ ! -d "$folder/usr" ]; then
    say "making $what in $folder, once"
    local making=$folder.making log=$folder.log tries=1
    remove_unfinished "$making"
    until "$fill" "$making" </dev/null >"$log" 2>&1; do
      # What apt prints while a mirror has only a part of the files of a new state.
      if ! grep -q 'Mirror sync in progress' "$log"; then
        tail -n 20 "$log" >&2
        remove_unfinished "$making"
        die "making $what failed; the whole log is $log"
      elif [ $tries -ge 3 ]; then
        remove_unfinished "$making"
        say "making $what failed, because Debian's mirror is being updated; try again later ($log)"
        exit $exit_mirror_is_updated
      fi
      say "Debian's mirror is being updated: trying again in a minute"
      sleep 60
      remove_unfinished "$making"
      tries=$((tries + 1))
    done
    as_root mv "$making" "$folder"
    remove_unused "${folder##*/}"
  fi
  exec 9>&-
}

# Removes folders that were made from earlier lists of packages and were not used for a month.
remove_unused() {  # NAME, of the new folder
  local log
  for log in $(cd "$cache" && find . -maxdepth 1 -name "${1%-*}-*.log" ! -name "$1.log" -mtime +30); do
    say "removing $cache/${log%.log}, which was not used for a month"
    as_root rm -rf "$cache/${log%.log}" "$cache/$log"
  done
}

# Runs as root, because mmdebstrap's other modes need user namespaces set up for the user, and in a mount
# namespace, so that the kernel removes what it mounts, whatever ends it.
run_mmdebstrap() { as_root unshare --mount mmdebstrap --mode=root "$@"; }

# Java's installation needs a folder for its manuals, and its settings are in /etc, which stays the host's.
fill_tree() {  # FOLDER
  # Removes unused programs of qemu-user, which has forty, and manuals, to save disk space.
  run_mmdebstrap --variant=apt \
    --include="$(packages "${tree_lists[@]}" | paste -sd,)" \
    --dpkgopt='path-exclude=/usr/bin/qemu-*' --dpkgopt='path-include=/usr/bin/qemu-aarch64' \
    --dpkgopt='path-include=/usr/bin/qemu-arm' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --essential-hook='mkdir -p "$1/usr/share/man/man1"' \
    --customize-hook='rm -rf "$1"/var/cache/apt/archives/*.deb' \
    --customize-hook='find "$1/usr/share/doc" -type f ! -name copyright -delete' \
    --customize-hook='find "$1/usr/lib/jvm" -type l -lname "/etc/java-*" -printf "%p %l\n" |
      while read -r link settings; do rm "$link" && cp -rL "$1$settings" "$link"; done' \
    "$suite" "$1"
}

cria_lists=(debian-cria-packages.txt debian-cria-device-packages.txt)
device_lists=(debian-cria-device-packages.txt debian-device-packages.txt)
native_lists=(debian-cria-packages.txt debian-packages.txt "${device_lists[@]}")
tree_lists=("${native_lists[@]}" debian-cross-packages.txt debian-checking-packages.txt)

# The name of the tree or sysroot NAME in the cache that has the packages in LISTS.
named_by_packages() {  # NAME LISTS…
  echo "$1-$(packages "${@:2}" | sort | sha256sum | cut -c1-12)"
}

# Makes the private tree unless it exists; sets $tree.
ensure_tree() {
  need_mmdebstrap mmdebstrap bwrap
  tree=$cache/$(named_by_packages "debian-$suite" "${tree_lists[@]}")
  make_in_cache "$tree" "a private Debian tree (some minutes)" fill_tree
}

# The programs of these packages run without what their installation would set up, but for the list of libraries. So
# they are only unpacked, which takes a third of the time.
fill_cria_tree() {  # FOLDER
  run_mmdebstrap --variant=extract --include="$(packages "${cria_lists[@]}" | paste -sd,)" \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' "$suite" "$1" || return
  as_root mkdir -p "$1/etc/alternatives" "$1/usr/local" && as_root /sbin/ldconfig -r "$1"
}

# As ensure_tree, with what building the program cria needs and nothing else; if the whole tree exists, that is used.
ensure_cria_tree() {
  need_mmdebstrap mmdebstrap bwrap
  tree=$cache/$(named_by_packages "debian-$suite" "${tree_lists[@]}")
  [ ! -d "$tree/usr" ] || return 0
  tree=$cache/$(named_by_packages "debian-cria-$suite" "${cria_lists[@]}")
  make_in_cache "$tree" "a private Debian tree for building cria (a minute)" fill_cria_tree
}

# Updates are not needed for a sysroot or for trying packages, and mirrors get those of rarer
# architectures late.
without_updates="--setup-hook=sed -i '/ $suite-/d' \"\$1\"/etc/apt/sources.list"

fill_browser() {  # FOLDER
  run_mmdebstrap --variant=apt --include="$(packages debian-browser-packages.txt | paste -sd,)" \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --customize-hook='rm -rf "$1"/var/cache/apt/archives/*.deb "$1"/usr/share/doc' "$suite" "$1"
}

# Makes a tree with a browser, apart from that of the compilers, unless it exists; sets $browser.
ensure_browser() {
  need_mmdebstrap mmdebstrap bwrap
  browser=$cache/$(named_by_packages "browser-$suite" debian-browser-packages.txt)
  make_in_cache "$browser" "a tree with a browser (some minutes)" fill_browser
}

llama_cpp=$cache/llama-cpp-sid

# llama.cpp is in no suite as old as the others, and its C library is newer than theirs: a script runs it with its own.
# A mirror that lags behind has lists that have expired, which is no reason not to compare with it.
fill_llama_cpp() {  # FOLDER
  run_mmdebstrap --variant=extract --include=llama.cpp-tools --dpkgopt='path-exclude=/usr/share/*' \
    --aptopt='Acquire::Check-Valid-Until "false"' sid "$1" || return
  as_root tee "$1/llama-bench" >/dev/null <<'SCRIPT' && as_root chmod a+rx "$1/llama-bench" || return
#!/bin/sh
# Takes whole paths: its own folder is where ggml looks for the code of this processor.
here=$(cd "$(dirname "$0")" && pwd)
program=$here/usr/bin/$(basename "$0")
libraries=$(echo "$here"/usr/lib/*-linux-gnu)
cd "$libraries"/ggml/backends*/ || exit
exec "$here"/usr/lib*/ld-linux-*.so.? --library-path "$libraries:$libraries/llama" "$program" "$@"
SCRIPT
  as_root ln -s llama-bench "$1/llama-server"
}

# Fetches Debian's newest llama.cpp unless it is there, to compare speeds with.
ensure_llama_cpp() {
  need_mmdebstrap mmdebstrap
  make_in_cache "$llama_cpp" "a tree with llama.cpp (a minute)" fill_llama_cpp
}

fill_sysroot() {  # FOLDER
  run_mmdebstrap --variant=extract --architectures="$sysroot_architecture" "$without_updates" \
    --include="$(packages "${device_lists[@]}" | paste -sd,)" "$suite" "$1" || return
  # An emulator looks for every path here before it looks at the host's, so only headers and
  # libraries may stay.
  as_root find "$1" -mindepth 1 -maxdepth 1 ! -name usr -exec rm -rf {} + &&
    as_root find "$1/usr" -mindepth 1 -maxdepth 1 ! -name include ! -name lib ! -name share \
      -exec rm -rf {} + &&
    as_root find "$1/usr/share" -mindepth 1 -maxdepth 1 ! -name cmake ! -name pkgconfig ! -name doc \
      -exec rm -rf {} + &&
    # Licences of libraries, for archives.
    as_root find "$1/usr/share/doc" -type f ! -name copyright -delete &&
    as_root ln -s usr/lib "$1/lib"
}

# Makes the sysroot of a Debian architecture, which the toolchain files use, unless it exists.
ensure_sysroot() {  # ARCHITECTURE
  sysroot_architecture=$1
  need_mmdebstrap mmdebstrap
  export CRIA_SYSROOT
  CRIA_SYSROOT=$cache/$(named_by_packages "sysroot-$suite-$1" "${device_lists[@]}")
  make_in_cache "$CRIA_SYSROOT" "a sysroot of $1 (a minute)" fill_sysroot
}

# True if a user namespace may register its own emulators for programs of other processors, so
# that nothing outside is affected. Otherwise, $refusal says why not.
emulates_in_namespaces() {
  refusal=$(as_root unshare --user --map-root-user --mount \
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc 2>&1)
}

# Its programs run by an emulator that looks for every path here first.
fill_python() {  # FOLDER
  run_mmdebstrap --variant=extract --architectures="$python_architecture" "$without_updates" \
    --include=python3,libstdc++6 --dpkgopt='path-exclude=/usr/share/*' "$suite" "$1" || return
  as_root find "$1" -mindepth 1 -maxdepth 1 ! -name usr -exec rm -rf {} + && as_root ln -s usr/lib "$1/lib"
}

# Makes a tree with Python for another architecture, to try wheels with, unless it exists; sets $emulated_python.
ensure_python() {  # ARCHITECTURE
  python_architecture=$1
  need_mmdebstrap mmdebstrap
  emulated_python=$cache/python-$suite-$1
  make_in_cache "$emulated_python" "a tree with Python for $1 (a minute)" fill_python
}

# The scripts of the packages run on this machine with the tree as their root, so that they cannot write
# anything else.
fill_device() {  # FOLDER
  as_root bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --bind "$cache" "$cache" \
    mmdebstrap --mode=chrootless --skip=check/chrootless --variant=apt \
    --architectures="$device_architecture" "$without_updates" "$suite" "$1"
}

# Makes the system of a device, with apt and without Cria's dependencies, unless it exists; sets
# $device.
ensure_device() {  # ARCHITECTURE
  device_architecture=$1
  need_mmdebstrap mmdebstrap bwrap
  device=$cache/device-$suite-$1
  make_in_cache "$device" "a system of $1 to install packages in (a minute)" fill_device
}
