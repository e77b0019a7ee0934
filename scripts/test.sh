# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# The tests, and the long forms of some. Sourced by ./dev.

# configure_and_build reads emulate_all.
# shellcheck disable=SC2034
command_test() {
  local preset=release
  case ${1:-} in release|dev|asan-ubsan|tsan|aarch64|armhf) preset=$1; shift ;; esac
  local targets=() emulate_all=
  set_up "$preset"
  if [ -n "$(architecture_of "$preset")" ]; then
    # This machine's programs make models for tests of the device's programs, and files to compare theirs with.
    configure_and_build release cria cria-convert cria-make-checkpoint
    emulate_all=OFF
    if [ "${1:-}" = --all ]; then
      emulate_all=ON
      shift
    fi
  fi
  case " $* " in *' -L unit '*) targets=(unit_tests) ;; esac
  configure_and_build "$preset" "${targets[@]}"
  cd "$root/build/$preset"
  # Prints which kernels each emulated core chose.
  [ -z "$(architecture_of "$preset")" ] ||
    inside ctest -L report -V | sed -n 's/^[0-9]*: report: //p' || true
  rm -f Testing/results.xml
  inside ctest --output-on-failure --output-junit Testing/results.xml -j "${JOBS:-$(nproc)}" "$@"
  check_skips "$preset"
}

# Compares which tests were skipped with tests/allowed_skips.txt. With CI=true, other skips of the release build are an
# error; of other presets they are only printed.
check_skips() {  # PRESET
  local where="any $1" fails=
  [ "$1" != release ] || fails=${CI:-}
  [ -f Testing/results.xml ] || return 0
  [ -d "${CRIA_TEST_DATA:-}" ] || where+=' no-data'
  awk -v where="$where" -v fails="$fails" -f "$root/tests/layout/check_skips.awk" "$root/tests/allowed_skips.txt" \
    Testing/results.xml Testing/Temporary/LastTest.log >&2 ||
    die "tests were skipped for reasons that are not in tests/allowed_skips.txt"
}

command_soak() {  # [STEPS]
  local preset
  set_up
  for preset in release tsan; do
    configure_and_build "$preset" llm_parallel_sessions_test
    inside env CRIA_RANDOM_STEPS="${1:-10000}" "build/$preset/tests/llm/llm_parallel_sessions_test"
  done
}

command_schemas() {  # [COUNT] [SEED]
  set_up
  configure_and_build release cria-sample-text
  cd "$root"
  inside tests/grammar/random_schemas.py build/release/tests/grammar/cria-sample-text --venv build/jsonschema \
    --count "${1:-1000}" --seed "${2:-1}"
}
