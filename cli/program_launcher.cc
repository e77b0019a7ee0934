#include "cli/program_launcher.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "core/format.h"

namespace cria::cli {
namespace {

// The program of this name that was installed or built with this one; empty if the system does not
// tell where this program is.
std::string ProgramBesideThis(const char* name) {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return "";
  const std::string_view own(path.data(), static_cast<size_t>(size));
  return std::string(own.substr(0, own.rfind('/') + 1)) + name;
}

}  // namespace

Status BecomeProgram(const char* name, std::string_view absent, std::span<char* const> arguments) {
  std::vector<char*> words = {const_cast<char*>(name)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(nullptr);
  if (const std::string beside = ProgramBesideThis(name); !beside.empty()) {
    execv(beside.c_str(), words.data());
  }
  execvp(name, words.data());
  if (errno == ENOENT) return Fail(ErrorCode::kNotFound, std::string(absent));
  return Fail(ErrorCode::kIo,
              Format("cannot start {}: {}", name, static_cast<const char*>(std::strerror(errno))));
}

}  // namespace cria::cli
