#include "cli/program_path.h"

#include <unistd.h>

#include <array>
#include <string_view>

namespace cria::cli {

std::string ProgramBesideThis(const char* name) {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return "";
  const std::string_view own(path.data(), static_cast<size_t>(size));
  return std::string(own.substr(0, own.rfind('/') + 1)) + name;
}

}  // namespace cria::cli
