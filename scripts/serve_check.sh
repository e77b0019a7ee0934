# shellcheck shell=bash disable=SC2154,SC2164  # ./dev sets variables, and ends at a failure.
# The server as its users meet it. Sourced by ./dev.

build_server() {
  set_up
  configure_and_build release cria-serve >&2
}

# Builds and starts cria-serve, and sets $url and $server. The server ends with this script.
start_server() {  # MODEL [OPTIONS]
  local log=$root/build/cria-serve.log port=${PORT:-8091} tries
  build_server
  url=http://127.0.0.1:$port
  (become "$root/build/release/cli/cria-serve" -m "$1" --port "$port" "${@:2}") 2>"$log" &
  server=$!
  trap 'kill "$server" 2>/dev/null || true' EXIT
  for ((tries = 0; tries < 100; ++tries)); do
    kill -0 "$server" 2>/dev/null || { cat "$log" >&2; die "cria-serve has ended"; }
    if grep -q " at $url" "$log"; then return; fi
    sleep 0.1
  done
  die "cria-serve does not start; its output is in $log"
}

start_demo_server() { start_server "$demo_model" --alias cria-demo -np 4; }

# Makes the model that answers where the demo model cannot, and sets $hostile_model.
make_hostile_model() {
  hostile_model=$root/build/hostile.cria
  configure_and_build release cria-convert cria-make-checkpoint >&2
  inside "$root/tests/server/load/hostile_model.py" -o "$hostile_model" \
    --cria-convert "$root/build/release/cli/cria-convert" \
    --cria-make-checkpoint "$root/build/release/tests/support/cria-make-checkpoint" >&2
}

command_serve_check() {  # [load|hostile|slow|clients|browser [ARGUMENTS]]
  local url hostile_model
  case ${1:-} in
    '')
      "$root/dev" serve-check load --minutes 5
      "$root/dev" serve-check hostile
      "$root/dev" serve-check slow
      "$root/dev" serve-check clients
      "$root/dev" serve-check browser
      start_demo_server
      "$root/dev" serve-check browser --url "$url"
      ;;
    load)
      build_server
      inside "$root/tests/server/load/load.py" --cria-serve "$root/build/release/cli/cria-serve" -m "$demo_model" \
        "${@:2}"
      ;;
    hostile)
      build_server
      make_hostile_model
      inside "$root/tests/server/load/hostile.py" --cria-serve "$root/build/release/cli/cria-serve" -m "$demo_model" \
        -m "$hostile_model" "${@:2}"
      ;;
    slow)
      build_server
      inside "$root/tests/server/load/slow_readers.py" --cria-serve "$root/build/release/cli/cria-serve" -m "$demo_model" \
        "${@:2}"
      ;;
    clients)
      start_demo_server
      "$root/tests/server/clients/run.sh" "$cache/serve-clients" "$url"
      ;;
    browser) check_page "${@:2}" ;;
    *) die "serve-check takes load, hostile, slow, clients or browser, not '$1'" ;;
  esac
}

# Without a network, so that a page that wants something from elsewhere fails; but a server of the caller's is
# outside, and is reached only through the host's.
check_page() {  # [ARGUMENTS of the test]
  local shots=$root/build/serve-browser network=--unshare-net run
  mkdir -p "$shots"
  run=(/usr/bin/python3 "$root/tests/server/page/browser_test.py" --screenshots "$shots" "$@")
  if system_is_recent_debian; then
    # shellcheck disable=SC2046
    install_packages $(packages debian-browser-packages.txt)
    exec "${run[@]}"
  fi
  ensure_browser
  case " $* " in *' --url'[\ =]*) network=--share-net ;; esac
  exec bwrap --die-with-parent --unshare-pid "$network" --ro-bind "$browser/usr" /usr --ro-bind "$browser/etc" /etc \
    --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp \
    --tmpfs /run --ro-bind "$root" "$root" --bind "$shots" "$shots" \
    env HOME=/tmp TMPDIR=/tmp PYTHONDONTWRITEBYTECODE=1 "${run[@]}" --no-sandbox
}
