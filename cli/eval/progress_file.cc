#include "cli/eval/progress_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/format.h"

namespace cria::cli {
namespace {

struct ProgressHeader {
  char magic[8] = {'C', 'R', 'I', 'A', 'E', 'V', 'A', 'L'};
  Digest of = {};
  uint64_t result_bytes = 0;
};

}  // namespace

std::unexpected<Error> ProgressFile::SystemError(const char* action) const {
  const int reason = errno;
  return Fail(ErrorCode::kIo, Format("{}: cannot {}: {}", path_, action, std::strerror(reason)));
}

Result<ProgressFile> ProgressFile::Open(const std::string& path, const Digest& of,
                                        size_t result_bytes) {
  FilePointer opened(std::fopen(path.c_str(), "r+b"), &std::fclose);
  if (!opened && errno == ENOENT) opened.reset(std::fopen(path.c_str(), "w+bx"));
  ProgressFile file(std::move(opened), path, result_bytes);
  if (!file.file_) return file.SystemError("open");
  struct stat status = {};
  if (fstat(fileno(file.file_.get()), &status) != 0) return file.SystemError("examine");
  if (!S_ISREG(status.st_mode)) {
    return Fail(ErrorCode::kIo, path + ": is not a regular file");
  }
  ProgressHeader expected;
  expected.of = of;
  expected.result_bytes = result_bytes;
  ProgressHeader header;
  const size_t header_bytes = std::fread(&header, 1, sizeof header, file.file_.get());
  if (header_bytes == 0 && std::feof(file.file_.get()) != 0) {
    if (std::fseek(file.file_.get(), 0, SEEK_SET) != 0 ||
        std::fwrite(&expected, sizeof expected, 1, file.file_.get()) != 1 ||
        std::fflush(file.file_.get()) != 0) {
      return file.SystemError("write");
    }
    return file;
  }
  if (std::ferror(file.file_.get()) != 0) return file.SystemError("read");
  if (header_bytes != sizeof header ||
      std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0) {
    return Fail(ErrorCode::kInvalidFile, path + ": is not the progress of an evaluation");
  }
  if (header.of != of || header.result_bytes != result_bytes) {
    return Fail(ErrorCode::kUsage,
                path + ": is the progress of an evaluation with another model, text or context");
  }
  if (std::fseek(file.file_.get(), 0, SEEK_END) != 0) return file.SystemError("read");
  const long bytes = std::ftell(file.file_.get());
  if (bytes < 0) return file.SystemError("read");
  file.num_results_ = (static_cast<size_t>(bytes) - sizeof header) / result_bytes;
  return file;
}

Status ProgressFile::Read(std::span<std::byte> results) {
  if (std::fseek(file_.get(), sizeof(ProgressHeader), SEEK_SET) != 0) return SystemError("read");
  if (std::fread(results.data(), 1, results.size(), file_.get()) != results.size()) {
    return SystemError("read");
  }
  num_results_ = results.size() / result_bytes_;
  // A stream that was read must be positioned before it is written.
  if (std::fseek(file_.get(), 0, SEEK_CUR) != 0) return SystemError("read");
  return {};
}

Status ProgressFile::Append(std::span<const std::byte> results) {
  const bool is_written =
      std::fwrite(results.data(), 1, results.size(), file_.get()) == results.size();
  if (!is_written || std::fflush(file_.get()) != 0) return SystemError("write");
  num_results_ += results.size() / result_bytes_;
  return {};
}

}  // namespace cria::cli
