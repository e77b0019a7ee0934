#include "support/files.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

namespace cria::support {

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot open " + path.string());
  // In parts, because tests are not optimized: an iterator would take many calls for each byte.
  std::string bytes;
  std::vector<char> part(size_t{1} << 16);
  do {
    stream.read(part.data(), static_cast<std::streamsize>(part.size()));
    bytes.append(part.data(), static_cast<size_t>(stream.gcount()));
  } while (stream);
  if (stream.bad()) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

void WriteFile(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::string> FileNames(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  if (!std::filesystem::exists(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace cria::support
