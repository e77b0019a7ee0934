#include "cli/input/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/format.h"

namespace cria::cli {
namespace {

constexpr const char* kStandardInput = "standard input";

std::unexpected<Error> CannotRead(const std::string& where, int reason) {
  return Fail(ErrorCode::kIo, Format("{}: cannot read: {}", where, std::strerror(reason)));
}

std::unexpected<Error> TooLong(const std::string& where, const TextBound& bound) {
  return Fail(ErrorCode::kInvalidFile, Format("{}: has more than the {} bytes that {}", where,
                                              bound.max_bytes, bound.reason));
}

}  // namespace

TextBound LongText() { return {size_t{64} << 20, "a text may have; give a part of it"}; }

Result<std::string> ReadTextFile(const std::string& path, const TextBound& bound) {
  const bool is_stdin = path == "-";
  std::FILE* const file = is_stdin ? stdin : std::fopen(path.c_str(), "rb");
  std::string text;
  char buffer[4096];
  // std::fread returns fewer bytes than the buffer has only at the end of the file or on an error.
  for (size_t bytes = sizeof buffer;
       file != nullptr && bytes == sizeof buffer && text.size() <= bound.max_bytes;) {
    bytes = std::fread(buffer, 1, sizeof buffer, file);
    text.append(buffer, bytes);
  }
  const bool is_read = file != nullptr && std::ferror(file) == 0;
  const int reason = errno;
  if (file != nullptr && !is_stdin) std::fclose(file);
  const std::string where = is_stdin ? kStandardInput : path;
  if (!is_read) return CannotRead(where, reason);
  if (text.size() > bound.max_bytes) return TooLong(where, bound);
  return text;
}

Result<bool> ReadInputLine(std::string& line, const TextBound& bound) {
  line.clear();
  int byte = 0;
  while ((byte = std::getc(stdin)) != EOF && byte != '\n') {
    if (line.size() == bound.max_bytes) return TooLong(kStandardInput, bound);
    line += static_cast<char>(byte);
  }
  if (std::ferror(stdin) != 0) return CannotRead(kStandardInput, errno);
  return byte != EOF || !line.empty();
}

}  // namespace cria::cli
