#!/usr/bin/env bash
# OpenAI's, Anthropic's and ollama's own clients against a server that runs the demo model:
#   run.sh FOLDER URL
# FOLDER keeps the clients, which are installed when they are first needed.
set -euo pipefail
folder=$1 url=$2
here=$(cd "$(dirname "$0")" && pwd)

mkdir -p "$folder"
if ! [ -x "$folder/python/bin/python" ] || ! "$folder/python/bin/python" -c 'import anthropic, ollama, openai' 2>/dev/null; then
  python3 -m venv "$folder/python"
  "$folder/python/bin/pip" install --quiet openai anthropic ollama
fi
"$folder/python/bin/python" "$here/clients.py" "$url"

if command -v npm >/dev/null; then
  [ -d "$folder/node_modules/openai" ] || npm install --silent --no-fund --no-audit --prefix "$folder" openai
  # Modules are looked for beside the program.
  cp "$here/clients.mjs" "$folder/clients.mjs"
  node "$folder/clients.mjs" "$url"
else
  echo "clients: not shown: that OpenAI's client for JavaScript works, because there is no npm"
fi
