# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# The table of this machine in docs/benchmarks.md. Sourced by ./dev.

command_benchmarks() {  # [ARGUMENTS]
  local programs=$root/build/release/cli models=("$demo_model") gguf converted commit
  set_up
  configure_and_build release cria cria-convert >&2
  # Models that `./dev real-models` has fetched, in the form in which their codes are kept.
  for gguf in "$CRIA_REAL_MODELS"/*.gguf; do
    [ -f "$gguf" ] || continue
    converted=${gguf%.gguf}.cria
    [ -f "$converted" ] || inside "$programs/cria-convert" "$gguf" -o "$converted" --no-verify >&2
    models+=("$converted")
  done
  commit=$(inside git -C "$root" rev-parse --short HEAD)
  [ -z "$(inside git -C "$root" status --porcelain -- runtime converter cli platforms)" ] || commit+=" with changes"
  inside "$root/scripts/benchmarks.py" --cria "$programs/cria" --page "$root/docs/benchmarks.md" --commit "$commit" \
    "$@" "${models[@]}"
}
