#!/usr/bin/env bash
# Builds llama-bench, to compare Cria with, from the source in the Python package llama-cpp-python.
# Needs pip, cmake, ninja and a C++ compiler, and adds nothing to the project.
#
#   tests/bench/llama_cpp/build.sh FOLDER     makes FOLDER/build/bin/llama-bench
set -euo pipefail
folder=$1
mkdir -p "$folder"
pip download --quiet --no-deps --no-binary :all: --dest "$folder" llama-cpp-python
tar xzf "$folder"/llama_cpp_python-*.tar.gz -C "$folder"
source=$(echo "$folder"/llama_cpp_python-*/vendor/llama.cpp)
cmake -S "$source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
  -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF \
  -DLLAMA_BUILD_EXAMPLES=OFF
ninja -C "$folder/build" llama-bench
