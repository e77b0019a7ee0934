#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "cria/error.h"
#include "model/checksum.h"

namespace cria::cli {

// Results of a long evaluation, kept while it runs, so that the next run goes on where a stopped
// one ended. All results have the same size.
class ProgressFile {
 public:
  // Opens the file, or creates it if it does not exist. `of` identifies the evaluation. Fails with
  // kUsage if the file is of another evaluation, with kInvalidFile if it is no such file.
  static Result<ProgressFile> Open(const std::string& path, const Digest& of, size_t result_bytes);

  size_t num_results() const { return num_results_; }
  // Reads the first results, as many as fit, and forgets the others.
  Status Read(std::span<std::byte> results);
  // They are in the file when it returns.
  Status Append(std::span<const std::byte> results);

 private:
  using FilePointer = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  ProgressFile(FilePointer file, std::string path, size_t result_bytes)
      : file_(std::move(file)), path_(std::move(path)), result_bytes_(result_bytes) {}
  std::unexpected<Error> SystemError(const char* action) const;

  FilePointer file_;
  std::string path_;
  size_t result_bytes_;
  size_t num_results_ = 0;
};

}  // namespace cria::cli
