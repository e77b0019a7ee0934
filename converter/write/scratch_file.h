#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "core/output_file.h"
#include "cria/error.h"

namespace cria {

// A file for what is too large for memory, beside an output; it is removed with this object, and
// also if the process is stopped. One thread at a time may use it.
class ScratchFile {
 public:
  static Result<ScratchFile> Create(const std::filesystem::path& output_path);

  // Returns the offset of `bytes` bytes that nobody else uses.
  uint64_t Reserve(uint64_t bytes);
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
    return file_.WriteAt(offset, bytes);
  }
  Status ReadAt(uint64_t offset, std::span<std::byte> bytes) const {
    return file_.ReadAt(offset, bytes);
  }

 private:
  explicit ScratchFile(OutputFile file) : file_(std::move(file)) {}

  OutputFile file_;
  uint64_t end_ = 0;
};

}  // namespace cria
