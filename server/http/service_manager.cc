#include "server/http/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/format.h"

namespace cria::server {
namespace {

// The first descriptor that is passed on.
constexpr int kFirstPassed = 3;
constexpr int kMaxPassed = 16;

// The number in an environment variable, which is removed; -1 if there is none.
int64_t TakeNumberVariable(const char* name) {
  const char* const text = std::getenv(name);
  if (text == nullptr) return -1;
  int64_t number = -1;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  if (error != std::errc() || stop != end) number = -1;
  unsetenv(name);
  return number;
}

}  // namespace

Result<std::vector<Listener>> TakePassedListeners() {
  const int64_t process = TakeNumberVariable("LISTEN_PID");
  const int64_t count = TakeNumberVariable("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  std::vector<Listener> listeners;
  // They may be meant for the process that started this one.
  if (process != getpid() || count <= 0) return listeners;
  if (count > kMaxPassed) {
    return Fail(ErrorCode::kUsage,
                Format("{} sockets were passed on; there may be {}", count, kMaxPassed));
  }
  for (int descriptor = kFirstPassed; descriptor < kFirstPassed + count; ++descriptor) {
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    CRIA_ASSIGN_OR_RETURN(Listener listener, TakeListener(Descriptor(descriptor)));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

void TellServiceManager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path == nullptr) return;
  const size_t length = std::strlen(path);
  if (length == 0 || length >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, path, length);
  // "@" stands for the zero byte of a name that is no file.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const Descriptor descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!descriptor.is_open()) return;
  // A failure cannot be reported anywhere; the manager has a time-out.
  [[maybe_unused]] const ssize_t count =
      sendto(descriptor.value(), state.data(), state.size(), MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&address),
             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length));
}

}  // namespace cria::server
