#include "cli/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/format.h"

namespace cria::cli {

Result<std::string> ReadTextFile(const std::string& path, size_t max_bytes) {
  const bool is_stdin = path == "-";
  std::FILE* const file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  std::string text;
  char buffer[4096];
  // Stops after the limit, because a device such as /dev/zero has no end. std::fread returns fewer
  // bytes than the buffer has only at the end of the file or on an error.
  for (size_t bytes = sizeof buffer;
       file != nullptr && bytes == sizeof buffer && text.size() <= max_bytes;) {
    bytes = std::fread(buffer, 1, sizeof buffer, file);
    text.append(buffer, bytes);
  }
  const bool is_read = file != nullptr && std::ferror(file) == 0;
  const int reason = errno;
  if (file != nullptr && !is_stdin) std::fclose(file);
  const std::string where = is_stdin ? "standard input" : path;
  if (!is_read) {
    return Fail(ErrorCode::kIo, Format("{}: cannot read: {}", where, std::strerror(reason)));
  }
  if (text.size() > max_bytes) {
    return Fail(
        ErrorCode::kInvalidFile,
        Format("{}: has more than the {} bytes that such a file may have", where, max_bytes));
  }
  return text;
}

}  // namespace cria::cli
