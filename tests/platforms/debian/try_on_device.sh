#!/usr/bin/env bash
# try_on_device.sh ARCHITECTURE PACKAGES CHECKPOINT DEVICE EMULATOR: as root, installs the packages and their
# dependencies in a copy of the system in the folder DEVICE, converts CHECKPOINT there and chats.
#
# This machine's apt chooses and fetches the packages, because the emulated one takes a minute. Everything else runs in
# that system: EMULATOR runs its programs, including dpkg and the packages' scripts. The kernel's rule for that belongs
# to a user namespace of its own, so that it has no effect outside.
set -euo pipefail
architecture=$1 packages=$2 checkpoint=$3 device=$4 emulator=$5
names=(cria cria-serve cria-convert cria-mpi libcria0 libcria-dev)

# The maximum sizes of what a device needs in addition to the base of Debian; change them only on purpose. More than
# half of what is installed is libhwy_contrib.so, which is in one package with libhwy.so and is never loaded.
max_needed_bytes=4300000
max_installed_bytes=7600000

prepare() {
  cp -a "$device" "$root"
  mkdir "$root/packages" "$root/checkpoint"
  for name in "${names[@]}"; do cp "$packages/${name}"_*_"$architecture".deb "$root/packages"; done
  cp "$checkpoint"/* "$root/checkpoint"
  apt() {
    apt-get -qq -o Dir="$root" -o Dir::State::status="$root/var/lib/dpkg/status" -o Dir::Bin::dpkg=dpkg \
      -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" \
      -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
  }
  apt update
  apt install --yes --no-install-recommends --download-only "$root"/packages/*.deb
  mv "$root"/var/cache/apt/archives/*.deb "$root/packages"
}

# Registers the emulator for the beginnings of ELF files of that architecture: little-endian programs and shared objects.
register_emulator() {
  local class machine
  case $architecture in
    arm64) class='\x02' machine='\xb7' ;;
    armhf) class='\x01' machine='\x28' ;;
  esac
  mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
  local magic="\\x7fELF$class\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00$machine\\x00"
  local mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
  printf '%s' ":cria:M::$magic:$mask:$emulator:F" >/proc/sys/fs/binfmt_misc/register
}

# In place of this process.
become_in_device() {
  exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive "$@"
}
in_device() { (become_in_device "$@"); }
step() { echo "$architecture: $*"; }
fail() { step "failed: $*"; exit 1; }
installed() { in_device dpkg-query --show --showformat '${Package}\n' | sort; }

# Sets needed[…] for the package and for those of the downloaded packages that it depends on.
need() {  # PACKAGE
  local files=("$root/packages/$1"_*.deb) package
  if [ -n "${needed[$1]:-}" ] || [ ! -f "${files[0]}" ]; then return; fi
  needed[$1]=yes
  for package in $(dpkg-deb -f "${files[0]}" Depends | tr ',|' '\n\n' | sed 's/^ *//; s/[ (:].*//'); do
    need "$package"
  done
}

use() {
  register_emulator
  mount --rbind /dev "$root/dev"
  mount --rbind /sys "$root/sys"
  mount -t proc proc "$root/proc"
  step "a system for $(in_device dpkg --print-architecture) on $(in_device uname -m)"
  installed >"$root/before"
  "$(dirname "${BASH_SOURCE[0]}")/try_archive.sh" "$packages"/cria-*-linux-"$architecture".tar.xz "$root"

  # The packages that a device needs are installed first, and measured.
  local first=() rest=() path
  declare -A needed=()
  need cria
  need libcria0
  for path in "$root"/packages/*; do
    path=${path##*/}
    if [ -n "${needed[${path%%_*}]:-}" ]; then first+=("/packages/$path"); else rest+=("/packages/$path"); fi
  done
  in_device dpkg --install "${first[@]}" >"$root/log" || { cat "$root/log"; fail "dpkg"; }
  measure_device
  in_device dpkg --install "${rest[@]}" >"$root/log" || { cat "$root/log"; fail "dpkg"; }
  [ -z "$(in_device dpkg --audit)" ] || fail "dpkg --audit reports problems"
  in_device ldconfig -p | grep 'libcria\.so\.0 ' || fail "ldconfig does not know libcria.so.0"

  local file
  for file in /usr/bin/cria /usr/bin/cria-serve /usr/bin/cria-convert /usr/bin/cria-mpi \
      "$(in_device sh -c 'echo /usr/lib/*/libcria.so.0')"; do
    in_device ldd "$file" >"$root/log" || { cat "$root/log"; fail "ldd $file"; }
    ! grep 'not found' "$root/log" || fail "$file lacks libraries"
    step "$file finds its $(grep -c '=>' "$root/log") libraries"
  done

  in_device cria-convert /checkpoint -o /demo.cria --weights int4 --fast >"$root/log" 2>&1 ||
    { cat "$root/log"; fail "cria-convert"; }
  tail -n 1 "$root/log"
  in_device cria chat -m /demo.cria --temp 0 <<<'Hello! Who are you?' 2>/dev/null | tee "$root/log"
  grep -q '^Hello! I am Cria' "$root/log" || fail "cria chat does not answer as it should"
  start_ranks
  serve
}

# Starts two ranks. mpirun is OpenMPI's or MPICH's, and does not need a network.
start_ranks() {
  local options=()
  if in_device mpirun --version | grep -q 'Open MPI'; then
    options=(--allow-run-as-root --oversubscribe --output :raw)
  fi
  # MPICH asks for the address of the machine's name.
  echo "127.0.0.1 $(in_device uname -n)" >>"$root/etc/hosts"
  # PMIx would share memory with pointers in it, which mean something else to each emulated process.
  in_device env OMPI_MCA_btl=self,sm PMIX_MCA_gds=hash timeout 300 mpirun "${options[@]}" -np 2 \
    cria chat -m /demo.cria --temp 0 <<<'Hello! Who are you?' >"$root/said" 2>"$root/log" ||
    { cat "$root/log"; fail "mpirun cria chat"; }
  step "two ranks answer: $(cat "$root/said")"
  grep -q 'Hello! I am Cria' "$root/said" || { cat "$root/log"; fail "two ranks do not answer as they should"; }
}

# Starts the server at a Unix socket, which needs no network, asks whether it is well, and ends it.
serve() {
  become_in_device cria-serve -m /demo.cria --unix-socket /served >"$root/log" 2>&1 &
  local server=$! tries=0
  until grep -q 'at unix:/served' "$root/log"; do
    kill -0 $server 2>/dev/null && [ $((tries += 1)) -le 600 ] || { cat "$root/log"; fail "cria-serve does not start"; }
    sleep 0.1
  done
  local answer
  answer=$(curl -sS --max-time 60 --unix-socket "$root/served" http://localhost/health)
  step "cria-serve answers $answer"
  [[ $answer == *ok* ]] || fail "cria-serve does not answer as it should"
  kill -TERM $server
  wait $server || { cat "$root/log"; fail "cria-serve does not end as it should"; }
}

# The bytes of the files that standard input names, without those of the base of Debian.
new_bytes() {
  local path sum=0
  while read -r path; do
    if [ -f "$root$path" ] && [ ! -e "$device$path" ]; then
      sum=$((sum + $(stat -c %s "$root$path")))
    fi
  done < <(in_device xargs readlink -f | sort -u)
  echo $sum
}

at_most() {  # WHAT BYTES MAX
  step "$1: $2 bytes of at most $3"
  [ "$2" -le "$3" ] || fail "that is more than the maximum"
}

measure_device() {
  local package bytes sum=0
  for package in $(installed | comm -13 "$root/before" -); do
    bytes=$(in_device dpkg --listfiles "$package" | new_bytes)
    printf '%10d  %s\n' "$bytes" "$package"
    sum=$((sum + bytes))
  done
  at_most "all that apt installs for cria" "$sum" "$max_installed_bytes"
  bytes=$({ in_device dpkg --listfiles cria
            in_device ldd /usr/bin/cria | sed -n 's/.*=> \(.*\) (.*/\1/p'; } | new_bytes)
  at_most "of it, cria and the libraries that it loads" "$bytes" "$max_needed_bytes"
}

# Runs this script again, for CRIA_DEVICE_COPY. Packages give files to other users than root, so that the user namespace
# has all users; unshare itself needs another package to map them.
run_in_namespaces() {  # ARGUMENTS of this script
  local own first file
  own=$(readlink /proc/self/ns/user)
  mkfifo "$scratch/mapped"
  # shellcheck disable=SC2016
  CRIA_DEVICE_COPY=$root unshare --user bash -c \
    'read -r <"$1"; shift; exec unshare --mount --pid --fork --kill-child "$@"' - "$scratch/mapped" "$0" "$@" &
  first=$!
  while [ "$(readlink /proc/$first/ns/user)" = "$own" ]; do sleep 0.1; done
  for file in uid_map gid_map; do echo '0 0 65536' >/proc/$first/$file; done
  echo >"$scratch/mapped"
  wait $first
}

if [ -n "${CRIA_DEVICE_COPY:-}" ]; then
  root=$CRIA_DEVICE_COPY
  use
else
  scratch=$(mktemp -d)
  trap 'rm -rf --one-file-system "$scratch"' EXIT
  root=$scratch/root
  prepare
  run_in_namespaces "$@"
fi
