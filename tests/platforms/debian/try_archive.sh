#!/usr/bin/env bash
# try_archive.sh ARCHIVE ROOT: unpacks the archive into the system in the folder ROOT, to which nothing of Cria was
# installed, and chats there. The kernel must be able to run the programs of that system.
set -euo pipefail
archive=$1 root=$2
max_bytes=3700000  # Of the archive; change it only on purpose.
fail() { echo "$name: failed: $*"; exit 1; }
name=$(basename "$archive" .tar.xz)

bytes=$(stat -c %s "$archive")
echo "$name: $bytes bytes of at most $max_bytes"
[ "$bytes" -le "$max_bytes" ] || fail "that is more than the maximum"
tar -C "$root/root" -xJf "$archive"
in_root() { chroot "$root" env -i PATH=/usr/bin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
in_root ldd "/root/$name/cria" >"$root/root/ldd" || fail "ldd"
! grep 'not found' "$root/root/ldd" || fail "it lacks libraries"
started=$(date +%s%N)
answer=$(in_root "/root/$name/cria" chat -m "/root/$name/demo.cria" --temp 0 <<<'Hello! Who are you?' 2>"$root/root/log") ||
  { cat "$root/root/log"; fail "cria chat"; }
echo "$name: after $((($(date +%s%N) - started) / 1000000)) ms: $answer"
[[ $answer == 'Hello! I am Cria'* ]] || fail "cria chat does not answer as it should"
