#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "core/platform.h"
#include "cria/error.h"

namespace cria {

class UnfinishedFile;

// What Commit replaces if the output's name is a symbolic link.
enum class LinkPolicy : uint8_t { kReplaceTarget, kReplaceLink };

// Who may read an output, besides its owner.
enum class Readers : uint8_t {
  kUsual,  // Whoever the process's umask allows.
  kNone,
};

// A file that appears under its name only when it is complete: it is written under a temporary name
// in the same folder, and removed unless Commit succeeds. Its errors say what to do about them.
class OutputFile {
 public:
  // Reserves `bytes` of disk, so that a full disk is reported at once. Commit replaces an existing
  // regular file; anything else with that name is an error. Temporary files of the same target are
  // removed if the process that wrote them was killed.
  static Result<OutputFile> Create(const std::filesystem::path& path, uint64_t bytes,
                                   LinkPolicy links = LinkPolicy::kReplaceTarget,
                                   Readers readers = Readers::kUsual);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  // Removes all temporary files that this process is writing. Call it right before the process ends
  // without destructors: signals stay blocked in this thread, and threads that create or remove
  // such a file wait forever. Safe in signal handlers.
  static void RemoveUnfinished();

  // Bytes that are never written read as zeros.
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes);
  // What was written; past the end of the file is an error.
  Status ReadAt(uint64_t offset, std::span<std::byte> bytes) const;
  // Makes the file durable and gives it its name.
  Status Commit();
  // What was written, to be read while the file has its temporary name.
  Result<platform::File> OpenToRead() const;
  // Removes the temporary name, and returns the file, which exists as long as it is open.
  Result<platform::File> TakeUnnamed();

 private:
  OutputFile();
  std::unexpected<Error> SystemError(int reason, const char* action) const;

  int descriptor_ = -1;  // Locked while the file has its temporary name.
  uint64_t bytes_ = 0;
  std::filesystem::path path_;
  std::unique_ptr<UnfinishedFile> temporary_;  // Null after Commit and TakeUnnamed.
};

}  // namespace cria
