# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# Building, and running what was built. Sourced by ./dev.

configure_and_build() {  # PRESET [TARGETS…]
  local preset=$1
  shift
  cd "$root"
  local folder=build/$preset libraries=
  case $preset in
    android-arm64) libraries=CRIA_NDK:PATH=$ndk ;;
    *) [ -z "$(architecture_of "$preset")" ] || libraries=CRIA_SYSROOT:PATH=$CRIA_SYSROOT ;;
  esac
  # Results of searches in another sysroot or NDK, or before a failure, must not be reused.
  if [ ! -f "$folder/build.ninja" ] ||
      { [ -n "$libraries" ] && ! grep -qxF "$libraries" "$folder/CMakeCache.txt"; }; then
    inside cmake --fresh --preset "$preset"
  fi
  if [ -n "${emulate_all:-}" ] && ! grep -qxF "CRIA_EMULATE_ALL:BOOL=$emulate_all" "$folder/CMakeCache.txt"; then
    inside cmake -D "CRIA_EMULATE_ALL=$emulate_all" "$folder"
  fi
  inside cmake --build "$folder" ${JOBS:+-j "$JOBS"} ${@:+--target "$@"}
}

# Builds without output unless it fails, for commands whose output is that of the program.
build_quietly() {  # TARGET
  local log
  log=$(mktemp)
  if ! (configure_and_build release "$1") >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    rm -f "$log"
    die "building $1 failed"
  fi
  rm -f "$log"
}

# A build folder may have come from another machine.
check_runs_here() {  # PROGRAM
  # The field of an ELF file for the processor.
  local processor=(od -An -tx2 -j18 -N2)
  [ "$("${processor[@]}" "$1")" = "$("${processor[@]}" /bin/sh)" ] ||
    die "$1 was built for another processor: remove it with 'rm -r $root/build/release', and run this again"
}

run_program() {  # NAME ARGS…
  local name=$1
  shift
  if [ "$name ${1:-}" = 'cria serve' ]; then
    name="cria-serve"
    shift
  fi
  set_up
  build_quietly "$name"
  check_runs_here "$root/build/release/cli/$name"
  # The program that `cria pack --for` emulates.
  local device=$root/build/aarch64
  if [ -x "$device/cli/cria" ]; then
    export CRIA_AARCH64_PROGRAM=$device/cli/cria QEMU_LD_PREFIX
    QEMU_LD_PREFIX=$(sed -n 's/^CRIA_SYSROOT:PATH=//p' "$device/CMakeCache.txt")
  fi
  become "$root/build/release/cli/$name" "$@"
}

# Builds only `cria chat`, so that a newcomer soon has an answer.
command_demo() {
  local cria=$root/build/demo/cli/cria-demo
  set_up demo
  configure_and_build demo cria-demo >&2
  if [ -t 0 ]; then
    inside "$cria" chat -m "$demo_model" "$@"
  else
    say "no terminal to type at: asking three questions instead"
    printf '%s\n' 'Hello! Who are you?' 'Where do you run?' 'Thank you. Goodbye!' |
      inside "$cria" chat -m "$demo_model" --lines --display-prompt "$@"
  fi
}

command_build() {  # [PRESET] [TARGETS…]
  set_up "${1:-release}"
  configure_and_build "${1:-release}" "${@:2}"
}

command_shell() {  # [COMMAND]
  set_up
  become "${@:-/bin/bash}"
}
