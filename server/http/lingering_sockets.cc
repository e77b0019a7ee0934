#include "server/http/lingering_sockets.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace cria::server {
namespace {

constexpr size_t kMaxSockets = 16;
constexpr auto kPatience = std::chrono::seconds(2);
constexpr size_t kMaxUnreadBytes = size_t{16} << 20;

}  // namespace

void LingeringSockets::Add(Descriptor socket, int epoll, uint64_t tag) {
  if (sockets_.size() >= kMaxSockets) return;
  epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data = {.u64 = tag}};
  shutdown(socket.value(), SHUT_WR);
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, socket.value(), &event) != 0) return;
  sockets_.push_back({std::move(socket), Clock::now() + kPatience, kMaxUnreadBytes});
}

bool LingeringSockets::IsDone(Socket& socket) {
  char bytes[4096];
  // A part in each turn, so that other connections have theirs.
  for (int i = 0; i < 64; ++i) {
    const ssize_t count = recv(socket.descriptor.value(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (count < 0) return errno != EAGAIN && errno != EINTR;
    if (count == 0 || static_cast<size_t>(count) > socket.bytes_left) return true;
    socket.bytes_left -= static_cast<size_t>(count);
  }
  return false;
}

void LingeringSockets::Read() {
  const Clock::time_point now = Clock::now();
  sockets_.remove_if([&](Socket& socket) { return socket.deadline <= now || IsDone(socket); });
}

LingeringSockets::Clock::time_point LingeringSockets::deadline() const {
  // The oldest is the first.
  return sockets_.empty() ? Clock::time_point::max() : sockets_.front().deadline;
}

}  // namespace cria::server
