#include "cli/program_launcher.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "cli/program_path.h"
#include "core/format.h"

namespace cria::cli {

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
