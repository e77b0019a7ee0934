#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "cria/error.h"

namespace cria {

// A file that appears under its name only when it is complete: it is written under a temporary name
// in the same folder, and removed unless Commit succeeds. Its errors say what to do about them.
class OutputFile {
 public:
  // Reserves `bytes` of disk, so that a full disk is reported at once. Commit replaces an existing
  // regular file; anything else with that name is an error. Temporary files of the same target are
  // removed if the process that wrote them was killed.
  static Result<OutputFile> Create(const std::filesystem::path& path, uint64_t bytes);

  OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Bytes that are never written read as zeros.
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  // Makes the file durable and gives it its name.
  Status Commit();

 private:
  OutputFile() = default;
  std::unexpected<Error> SystemError(int reason, const char* action) const;

  int descriptor_ = -1;  // Locked while the file has its temporary name.
  uint64_t bytes_ = 0;
  std::filesystem::path path_;
  std::filesystem::path temporary_path_;  // Empty when there is nothing to remove.
};

}  // namespace cria
