#include "cli/serve_launcher.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "core/format.h"

namespace cria::cli {
namespace {

constexpr const char* kServer = "cria-serve";

// The server that was installed or built with this program; empty if the system does not tell where
// this program is.
std::string ServerBesideThis() {
  std::array<char, 4096> path;
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size <= 0) return "";
  const std::string_view own(path.data(), static_cast<size_t>(size));
  return std::string(own.substr(0, own.rfind('/') + 1)) + kServer;
}

}  // namespace

void AddServeCommand(CommandLine& program) {
  program.AddCommand("serve", "Serve a model over HTTP: the program cria-serve");
}

Status BecomeServer(std::span<char* const> arguments) {
  std::vector<char*> words = {const_cast<char*>(kServer)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(nullptr);
  if (const std::string beside = ServerBesideThis(); !beside.empty()) {
    execv(beside.c_str(), words.data());
  }
  execvp(kServer, words.data());
  if (errno == ENOENT) {
    return Fail(ErrorCode::kNotFound,
                "cria serve is the program cria-serve, which is not installed; it has a package of "
                "its own: apt install ./cria-serve_*.deb");
  }
  return Fail(ErrorCode::kIo, Format("cannot start cria-serve: {}",
                                     static_cast<const char*>(std::strerror(errno))));
}

}  // namespace cria::cli
