# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# Checks with trained models. Sourced by ./dev.

command_real_models() {  # [--llama-cpp] [ARGUMENTS]
  local status=0 programs=$root/build/release/cli
  set_up
  if [ "${1:-}" = --llama-cpp ]; then
    ensure_llama_cpp
    shift
  fi
  # The host's Python, which has pip.
  "$root/tests/real_models/fetch.py" "$CRIA_REAL_MODELS" || status=$?
  case $status in
    0) ;;
    77) exit "$exit_mirror_is_updated" ;;
    *) die "fetching the models failed (see above)" ;;
  esac
  configure_and_build release cria cria-serve cria-convert >&2
  [ ! -x "$llama_cpp/llama-bench" ] ||
    set -- --llama-bench "$llama_cpp/llama-bench" --llama-server "$llama_cpp/llama-server" "$@"
  inside "$root/tests/real_models/real_models.py" --cria "$programs/cria" --cria-serve "$programs/cria-serve" \
    --cria-convert "$programs/cria-convert" "$@"
}
