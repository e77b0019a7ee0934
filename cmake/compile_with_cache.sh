#!/bin/sh
# Runs a compiler so that ccache finds what another checkout compiled: compile_with_cache.sh ccache COMPILER ARGUMENTS…
output=
dependencies=
previous=
for argument; do
  case $previous in
    -o) output=$argument ;;
    -MF) dependencies=$argument ;;
  esac
  previous=$argument
done
case $output in
  *.gch)
    # GCC would read an older file with precompiled headers in place of the headers, and ccache would look for its bytes.
    rm -f "$output"
    exec "$@"
    ;;
  *.pch)
    # Clang's precompiled headers have absolute paths in them. So each checkout compiles its own, and a sum of the headers
    # is written beside it, which ccache takes instead of its bytes (CCACHE_PCH_EXTSUM) for the sources that use it.
    CCACHE_RECACHE=1 "$@" || exit
    sed -e 's/^[^:]*: *//' -e 's/\\$//' "$dependencies" | xargs cat | sha256sum >"$output.sum"
    ;;
  *) exec "$@" ;;
esac
