#include "cli/text_file.h"
#include "core/format.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>

namespace cria::cli {

Result<std::string> ReadTextFile(const std::string& path) {
  if (path == "-") {
    return std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  }
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (!file) {
    return Fail(ErrorCode::kIo, Format("{}: cannot read: {}", path, std::strerror(errno)));
  }
  return text;
}

}  // namespace cria::cli
