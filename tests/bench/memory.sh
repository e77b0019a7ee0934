#!/usr/bin/env bash
# Measures memory and starting time of a model: packing, the plan compared with measurements at several
# contexts, and a whole process that generates one token.
#
#   ./dev shell tests/bench/memory.sh MODEL.cria [THREADS]
set -euo pipefail
model=$1
threads=${2:-2}
here=$(cd "$(dirname "$0")/../.." && pwd)
cria=$here/build/release/cli/cria
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CRIA_PACK_CACHE=$work/packed

# The largest RssAnon of a command in kB, read every few milliseconds.
watch_memory() {
  "$@" > "$work/output" 2>&1 &
  local pid=$! private=0 value
  while value=$(awk '/^RssAnon:/ {print $2}' "/proc/$pid/status" 2> "$work/gone") && [ -n "$value" ]; do
    [ "$value" -gt "$private" ] && private=$value
    sleep 0.003
  done
  wait "$pid"
  echo "$private"
}

echo "## packing with $threads threads"
begin=$(date +%s%N)
private=$(watch_memory "$cria" pack -m "$model" -t "$threads")
end=$(date +%s%N)
echo "$(((end - begin) / 1000000)) ms, $((private / 1024)) MiB of private memory at the highest look"

echo "## plan against measurement"
for context in 512 2048 8192; do
  for kv in int8 f16; do
    echo "-c $context --kv $kv"
    "$cria" bench --memory -m "$model" -c "$context" --kv "$kv" -t "$threads" |
      grep -E '^(full|planned|private)'
  done
done

echo "## a process that makes one token, packed weights in the page cache"
cat "$CRIA_PACK_CACHE"/* > /dev/null
for _ in 1 2 3 4 5 6 7 8 9; do
  begin=$(date +%s%N)
  "$cria" run -m "$model" -p "" -n 1 --temp 0 -c 2048 --kv int8 -t "$threads" > "$work/text" 2> "$work/stats"
  end=$(date +%s%N)
  echo "$(((end - begin) / 1000)) $(grep -o 'load [0-9.]* ms, first token [0-9.]* ms' "$work/stats")"
done | sort -n | awk '{line[NR] = $0} END {print "process, microseconds: median", line[int((NR + 1) / 2)], "| best", line[1]}'
