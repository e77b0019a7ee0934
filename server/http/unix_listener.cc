#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/format.h"
#include "server/http/listener.h"

namespace cria::server {
namespace {

constexpr int kUnixBacklog = 64;

Descriptor NewUnixSocket() {
  return Descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::unexpected<Error> CannotUsePath(const std::string& path, std::string_view why) {
  return Fail(ErrorCode::kIo, Format("{}: cannot listen there: {}", path, why));
}

// Whether there is a socket that a killed process has left. Fails if something else is there.
Result<bool> IsStale(const std::string& path, const sockaddr_un& address) {
  struct stat entry = {};
  if (lstat(path.c_str(), &entry) != 0) {
    if (errno == ENOENT) return false;
    return CannotUsePath(path, std::strerror(errno));
  }
  if (!S_ISSOCK(entry.st_mode)) {
    return CannotUsePath(path, "there is a file that is no socket; choose another path");
  }
  const Descriptor probe = NewUnixSocket();
  if (!probe.is_open()) return CannotUsePath(path, std::strerror(errno));
  if (connect(probe.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno == ECONNREFUSED) {
    return true;
  }
  return CannotUsePath(path, "another process listens there; choose another path");
}

}  // namespace

Result<Listener> ListenAtPath(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The path is followed by a zero byte.
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Fail(ErrorCode::kUsage, Format("the path of a socket has 1 to {} bytes, not {}",
                                          sizeof address.sun_path - 1, path.size()));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  CRIA_ASSIGN_OR_RETURN(const bool is_stale, IsStale(path, address));
  if (is_stale && unlink(path.c_str()) != 0) return CannotUsePath(path, std::strerror(errno));
  Descriptor descriptor = NewUnixSocket();
  struct stat entry = {};
  if (!descriptor.is_open() ||
      bind(descriptor.value(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(descriptor.value(), kUnixBacklog) != 0 || lstat(path.c_str(), &entry) != 0) {
    return CannotUsePath(path, std::strerror(errno));
  }
  return Listener{.socket = std::move(descriptor),
                  .place = "unix:" + path,
                  .is_local = true,
                  .path = path,
                  .device = entry.st_dev,
                  .inode = entry.st_ino};
}

void RemoveSocketFile(const Listener& listener) {
  struct stat entry = {};
  if (listener.path.empty() || lstat(listener.path.c_str(), &entry) != 0) return;
  if (entry.st_dev == listener.device && entry.st_ino == listener.inode) {
    unlink(listener.path.c_str());
  }
}

}  // namespace cria::server
