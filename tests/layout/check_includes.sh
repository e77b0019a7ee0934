#!/usr/bin/env bash
# Which headers a folder may include. Cria's own folders are kept apart by their include paths already
# (cmake/CriaTargets.cmake); this keeps libraries, and ways around the include paths, where they belong.
set -euo pipefail
cd "$(dirname "$0")/../.."

failures=0

# allow_only PATTERN WHY FOLDER…: an include that matches PATTERN may stand in these folders alone.
allow_only() {
  local pattern=$1 why=$2 found
  shift 2
  found=$(grep -rnE "^\s*#\s*include\s+$pattern" --include='*.h' --include='*.cc' \
    runtime jinja grammar ranks server converter cli platforms tests | grep -vE "^($(IFS='|'; echo "$*"))" || true)
  [ -z "$found" ] && return
  printf '%s\n%s\n\n' "$why" "$found"
  failures=1
}

allow_only '<xnnpack\.h>' 'XNNPACK belongs in runtime/xnn:' runtime/xnn/ tests/xnn/ tests/bench/
allow_only '<pthreadpool\.h>' 'Threads are runtime/core/thread_pool: pthreadpool is for XNNPACK alone:' none
allow_only '["<]hwy/' 'Highway belongs in runtime/ops:' runtime/ops/ tests/ops/ tests/bench/ \
  tests/emulation/avx2_processor.cc
allow_only '<cpuinfo\.h>' 'cpuinfo belongs in platforms:' platforms/ tests/emulation/avx2_processor.cc
allow_only '<pcre2\.h>' 'PCRE2 belongs in runtime/text:' runtime/text/ 'tests/grammar/pattern_pcre2_test\.cc'
allow_only '<utf8proc\.h>' 'utf8proc belongs in jinja, runtime/text and grammar:' \
  jinja/ runtime/text/ grammar/ \
  tests/text/ tests/grammar/
allow_only '<(flatbuffers/|nlohmann/|google/protobuf/).*' \
  'FlatBuffers belongs where model files are read or written; JSON and protobuf on the host side:' \
  'runtime/model/model_file_reader\.cc' 'runtime/model/packed_file\.cc' converter/ cli/ runtime/messages/ \
  server/answers/ server/api/ server/calls/ server/requests/ tests/
allow_only '<Eigen/.*' 'Only one source is compiled for the processors that linear algebra needs:' \
  converter/calibrate/linear_algebra.cc
allow_only '<(curl|openssl)/.*' 'Only converter/hub opens connections and hashes what it downloads:' converter/hub/ \
  tests/support/untrusted_tls_server.cc
allow_only '"(model|packed)_generated\.h"' \
  'The generated headers belong in the sources that read or write a model file:' \
  'runtime/model/(model_file_reader|packed_file)\.cc' 'converter/[a-z_]+/[a-z_]+\.cc' 'tests/.*\.cc'
allow_only '"\.\./' 'Includes go through include roots, never through "../":' none
allow_only '<(unistd|fcntl|sys/.*|signal)\.h>' 'The operating system belongs in platforms:' \
  platforms/ ranks/mpi/ cli/ converter/ server/ tests/
allow_only '<(mpi|pmix)\.h>' 'MPI belongs in ranks/mpi:' ranks/mpi/
allow_only '<microhttpd\.h>' 'libmicrohttpd belongs in server/http:' server/http/ tests/server/http/ tests/fuzz/
allow_only '<format>' 'cria::Format is compiled once, std::format in every source that calls it:' 'runtime/core/format\.h' \
  tests/

exit $failures
