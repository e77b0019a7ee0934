# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# The table of this machine in docs/benchmarks.md. Sourced by ./dev.

command_benchmarks() {  # [ARGUMENTS]
  local programs=$root/build/release/cli folder=$root/build/benchmarks models=("$demo_model") gguf converted commit
  set_up
  configure_and_build release cria cria-convert >&2
  mkdir -p "$folder"
  # The models that `./dev real-models` has fetched, converted with their codes kept.
  for gguf in "$CRIA_REAL_MODELS"/*.gguf; do
    [ -f "$gguf" ] || continue
    converted=$folder/$(basename "$gguf" .gguf).cria
    inside "$programs/cria-convert" "$gguf" -o "$converted" --no-verify --overwrite >&2
    models+=("$converted")
  done
  commit=$(inside git -C "$root" rev-parse --short HEAD)
  # The page that is written does not change what is measured.
  [ -z "$(inside git -C "$root" status --porcelain -- . ':!docs')" ] || commit+=" with changes"
  inside "$root/scripts/benchmarks.py" --cria "$programs/cria" --page "$root/docs/benchmarks.md" --commit "$commit" \
    "$@" "${models[@]}"
}
