#!/bin/sh
# Runs a compiler so that ccache finds what another checkout compiled: compile_with_clang.sh ccache clang++ ARGUMENTS…
#
# Clang's precompiled headers have absolute paths in them. So each checkout compiles its own, and a sum of the headers
# is written beside it, which ccache takes instead of its bytes (CCACHE_PCH_EXTSUM) for the sources that use it.
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
  *.pch) ;;
  *) exec "$@" ;;
esac
CCACHE_RECACHE=1 "$@" || exit
sed -e 's/^[^:]*: *//' -e 's/\\$//' "$dependencies" | xargs cat | sha256sum >"$output.sum"
