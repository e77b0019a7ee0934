#include "support/files.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace cria::support {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot open " + path.string());
  std::string bytes(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

void WriteFile(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

}  // namespace cria::support
