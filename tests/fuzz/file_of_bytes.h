#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <format>
#include <string>
#include <vector>

#include "converter/write/tensor_map.h"

namespace cria {

// A file in /tmp with the bytes that a fuzzer made up, as long as this lives.
class FileOfBytes {
 public:
  FileOfBytes(const char* name, const uint8_t* data, size_t size)
      : path_(std::format("/tmp/{}_fuzzer.XXXXXX", name)) {
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0 || write(descriptor, data, size) != static_cast<ssize_t>(size)) abort();
    close(descriptor);
  }
  ~FileOfBytes() { unlink(path_.c_str()); }
  FileOfBytes(const FileOfBytes&) = delete;
  FileOfBytes& operator=(const FileOfBytes&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What a reader let through must be readable.
inline void ReadAllTensors(const Checkpoint& checkpoint) {
  const auto mapped = MapTensors(checkpoint);
  if (!mapped) return;
  TensorReader reader;
  std::vector<float> values;
  for (const MappedTensor& tensor : *mapped) {
    for (const MappedPart& part : tensor.parts) {
      values.resize(part.source->num_elements());
      (void)reader.Read(*part.source, 0, values);
    }
  }
}

}  // namespace cria
