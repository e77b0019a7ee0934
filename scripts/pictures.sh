# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# The pictures of README, made from what the programs show. Sourced by ./dev.

# The model of the pictures, as ./dev real-models names it.
picture_model=qwen2.5-coder-0.5b-instruct-q4_k_m

# Writes what a terminal shows while these lines are typed. An empty line is Ctrl-D.
draw_terminal() {  # FOLDER, which has the model
  (
    cd "$1"
    export PATH=$root/build/release/cli:$PATH XDG_STATE_HOME=$1/state CRIA_PACK_CACHE=$1/packed
    inside cria pack -m qwen-coder.cria >&2
    inside "$root/build/release/tests/support/cria-terminal-picture" -o "$root/docs/pictures/terminal.svg" --columns 88 \
      --title "The plan of a model's memory for a board, and a chat with this model, at a terminal" <<'LINES'
cria plan -m qwen-coder.cria -c 2048 --board pi-4-2gb | tail -n 2
cria chat -m qwen-coder.cria -c 2048 --temp 0
Write a Python function fib(n) with a loop. Only code, no explanation.
How long does it take for n, in big O notation? Answer in one sentence.

LINES
  )
}

# Takes pictures of the page, in which this conversation is held with the server.
draw_page() {  # FOLDER
  local url
  start_server "$1/qwen-coder.cria" -c 2048 --alias qwen2.5-coder-0.5b
  (check_page --url "$url" PictureTest)
  local theme
  for theme in light dark; do
    cp "$root/build/serve-browser/picture-$theme.png" "$root/docs/pictures/page-$theme.png"
  done
}

command_pictures() {  # [terminal|page]
  local folder=$root/build/pictures
  case ${1:-} in ''|terminal|page) ;; *) die "pictures takes terminal or page, not '$1'" ;; esac
  set_up
  local gguf=$CRIA_REAL_MODELS/$picture_model.gguf
  [ -f "$gguf" ] || die "there is no $gguf: './dev real-models' fetches it"
  configure_and_build release cria cria-serve cria-convert cria-terminal-picture >&2
  mkdir -p "$folder" "$root/docs/pictures"
  if [ ! -f "$folder/qwen-coder.cria" ]; then
    # A model is named after its file.
    ln -sf "$gguf" "$folder/qwen2.5-coder-0.5b.gguf"
    inside "$root/build/release/cli/cria-convert" "$folder/qwen2.5-coder-0.5b.gguf" -o "$folder/qwen-coder.cria" >&2
  fi
  [ "${1:-}" = page ] || draw_terminal "$folder"
  [ "${1:-}" = terminal ] || use serve_check draw_page "$folder"
  say "look at them: $root/docs/pictures"
}
