#!/usr/bin/env bash
# commands.sh CRIA CRIA_CONVERT FAKE_HUB SOURCES PAGE: runs every command line of cria, cria-serve and cria-convert in a
# page, such as README.md, in an empty folder, with the demo checkpoint in place of the models that are named, also of
# those on the hub. A line that needs a board or an emulator is only read by the program's own command line.
set -euo pipefail
cria=$1 convert=$2 fake_hub=$3 sources=$4 page=$5

# Several boards are tried by ranks_check; without MPI, there is no program for them.
unavailable='|(ExecStart=)?mpirun '
[ -x "$(dirname "$cria")/cria-mpi" ] || unavailable+='|.* --ranks '

# The command lines of the blocks of code, without prompts and comments.
lines=$(awk '/^```/ { inside = !inside; next } inside' "$sources/$page" | sed -E 's/^\$ //; s/ +# .*//' |
  grep -E '(^|[ |;])(\./dev )?cria(-convert|-serve)? ' | grep -vE "^(scp|\./dev shell|#|.*\(cria_$unavailable)" || true)
count=$(grep -c . <<<"$lines" || true)
echo "$count command lines"
case $page in README.md) least=4 ;; docs/use/chat.md | docs/use/convert.md) least=9 ;; platforms/raspberry-pi/*) least=7 ;; examples/*) least=1 ;; *) least=0 ;; esac
[ "$count" -ge "$least" ] || { echo "that are fewer than $least: has the form of $page changed?"; exit 1; }
[ "$count" -gt 0 ] || exit 0

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export HOME=$folder CRIA_PACK_CACHE=$folder/packed XDG_STATE_HOME=$folder/state
# What lines download and convert is kept here, whatever variables the user has for it.
export CRIA_MODELS=$folder/kept
unset CRIA_MODEL CRIA_DOWNLOAD_CACHE XDG_CACHE_HOME XDG_DATA_HOME HF_TOKEN

# What the lines name: a longer context than the demo's, because they ask for one.
mkdir -p bin models demo
cp -r "$sources/demo/cria-demo" "$sources/demo/conversations.jsonl" demo/
cp -r demo/cria-demo models/Llama-3.2-1B-Instruct
sed -i 's/"max_position_embeddings": 512/"max_position_embeddings": 4096/' models/Llama-3.2-1B-Instruct/config.json
"$convert" demo/cria-demo -o demo/cria-demo.cria --no-verify --fast >made.log 2>&1
"$convert" models/Llama-3.2-1B-Instruct -o llama-1b.cria --no-verify --fast >>made.log 2>&1
cp llama-1b.cria llama-8b.cria
echo 'Where do you run?' >question.txt
printf '%s\n' 'Hello! Who are you?' 'Thank you. Goodbye!' >questions.txt
seq 40 >letter.txt
seq 2000 >text.txt
echo '[{"role": "user", "content": "Hello!"}]' >conversation.json
echo '{"messages": [{"role": "user", "content": "Hello!"}]}' >prompts.jsonl
# A page shows it.
awk '/^```json/ { inside = 1; next } /^```/ { inside = 0 } inside' "$sources/docs/use/forms.md" >llama.json
[ -s llama.json ]

# `./dev cria`, `cria` and the same of cria-convert. With PARSE_ONLY, --help makes the program only read its arguments.
cat >dev <<SCRIPT
#!/usr/bin/env bash
case \$1 in cria) program=$cria ;; cria-serve) program=$(dirname "$cria")/cria-serve ;; cria-convert) program=$convert ;; *) exit 0 ;; esac
exec "\$program" "\${@:2}" \${PARSE_ONLY:+--help}
SCRIPT
for name in cria cria-serve cria-convert; do printf '#!/bin/sh\nexec "%s/dev" %s "$@"\n' "$folder" "$name" >bin/$name; done
chmod +x dev bin/*
export PATH=$folder/bin:$PATH

# $run is one of these two.
# shellcheck disable=SC2329
run_line() { timeout 400 bash -euo pipefail -c "$1"; }

# Runs a line with a hub on this machine that has the model it names. The hub ends with the subshell.
# shellcheck disable=SC2329
run_with_hub() {  # LINE
  local model
  model=$(grep -oE 'hf:[^/ ]+/[^/@: ]+' <<<"$1")
  coproc hub { exec "$fake_hub" "${model#hf:}" models/Llama-3.2-1B-Instruct; }
  read -r HF_ENDPOINT <&"${hub[0]}"
  export HF_ENDPOINT
  run_line "$1"
}

failures=0
while IFS= read -r line; do
  run=run_line parse_only=
  # A short name stands for a checkpoint on the hub. Nobody is at a terminal here who could be asked.
  short=$(sed -nE 's#^(\./dev )?cria chat ([a-z0-9.]+-[0-9.]+b)$#\2#p' <<<"$line")
  [ -z "$short" ] || line=${line/"$short"/$("$cria" models --known | awk -v name="$short" '$1 == name { print $NF }')}
  case $line in *'cria chat hf:'* | *'cria chat ~/'*) line+=' -y' ;; esac
  case $line in
    *hf:*) run=run_with_hub ;;
    # A server would not end.
    *'--for '*|*cria-serve*|*'cria serve'*) parse_only=1 ;;
  esac
  if ! (export PARSE_ONLY=$parse_only; "$run" "$line") <question.txt >output.log 2>&1; then
    echo "$page: this does not work: $line"
    tail -n 5 output.log
    failures=1
  fi
done <<<"$lines"
exit $failures
