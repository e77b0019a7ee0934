#include "cli/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/format.h"

namespace cria::cli {

Result<std::string> ReadTextFile(const std::string& path) {
  const bool is_stdin = path == "-";
  std::FILE* const file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  std::string text;
  char buffer[4096];
  // std::fread returns fewer bytes than the buffer has only at the end of the file or on an error.
  for (size_t bytes = sizeof buffer; file != nullptr && bytes == sizeof buffer;) {
    bytes = std::fread(buffer, 1, sizeof buffer, file);
    text.append(buffer, bytes);
  }
  const bool is_read = file != nullptr && std::ferror(file) == 0;
  const int reason = errno;
  if (file != nullptr && !is_stdin) std::fclose(file);
  if (is_read) return text;
  return Fail(ErrorCode::kIo, Format("{}: cannot read: {}", is_stdin ? "standard input" : path,
                                     std::strerror(reason)));
}

}  // namespace cria::cli
