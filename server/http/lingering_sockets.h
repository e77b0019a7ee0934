#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>

#include "server/http/listener.h"

namespace cria::server {

// Sockets of clients that were refused while they were still sending. If a socket with unread bytes
// is closed, the client may lose the answer, so these are read for a while, until the client has
// read the answer and closes its end.
class LingeringSockets {
 public:
  using Clock = std::chrono::steady_clock;

  // Takes the socket, whose answer has been sent. If there are too many, it is closed at once.
  // `epoll` reports with `tag` when Read is to be called.
  void Add(Descriptor socket, int epoll, uint64_t tag);
  // Reads what there is, and closes sockets whose client is done or whose time is over.
  void Read();
  // When Read is to be called at the latest.
  Clock::time_point deadline() const;

 private:
  struct Socket {
    Descriptor descriptor;
    Clock::time_point deadline;
    size_t bytes_left;
  };
  static bool IsDone(Socket& socket);

  std::list<Socket> sockets_;
};

}  // namespace cria::server
