#include "converter/input/whole_file.h"

#include <span>
#include <system_error>

#include "core/format.h"
#include "core/platform.h"
#include "core/quotable.h"

namespace cria {

Result<bool> FileExists(const std::filesystem::path& path) {
  std::error_code error;
  const auto entry = std::filesystem::symlink_status(path, error);
  if (entry.type() == std::filesystem::file_type::not_found) return false;
  const auto target = std::filesystem::status(path, error);
  if (std::filesystem::exists(target)) return true;
  if (std::filesystem::is_symlink(entry) &&
      target.type() == std::filesystem::file_type::not_found) {
    std::error_code ignored;
    return Fail(
        ErrorCode::kIo,
        Format("{}: is a link to \"{}\", which does not exist; copy the file itself", path.string(),
               Quotable(std::filesystem::read_symlink(path, ignored).string())));
  }
  return Fail(ErrorCode::kIo, Format("{}: cannot open: {}", path.string(), error.message()));
}

Result<std::string> ReadWholeFile(const std::filesystem::path& path, uint64_t max_bytes) {
  CRIA_ASSIGN_OR_RETURN(const auto file, platform::File::Open(path.string()));
  if (file.size_bytes() > max_bytes) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: is {} bytes, more than the {} that such a file may have", file.path(),
                       file.size_bytes(), max_bytes));
  }
  std::string bytes(file.size_bytes(), '\0');
  CRIA_RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(bytes))));
  if (bytes.empty() || bytes.starts_with("version https://git-lfs")) {
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: is {}; download the file itself", file.path(),
                       bytes.empty() ? "empty" : "only a pointer of Git LFS"));
  }
  return bytes;
}

}  // namespace cria
