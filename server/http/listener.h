#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cria/error.h"

struct sockaddr;

namespace cria::server {

// A descriptor that is closed with the object.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int value() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  int Release() { return std::exchange(value_, -1); }

 private:
  int value_ = -1;
};

// A socket that accepts connections.
struct Listener {
  Descriptor socket;
  // Where it listens, for people: "http://127.0.0.1:8080" or "unix:/run/cria/socket".
  std::string place;
  // The name or address that was asked for; empty if there is none, or if it means every address.
  std::string host;
  // Only processes of this machine can connect.
  bool is_local = false;
  // The path and the file's identity of a Unix socket that this process made, and so removes.
  std::string path;
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Listens at all addresses of a name, such as the two of "localhost", or at one address. Port 0: a
// free one.
Result<std::vector<Listener>> ListenAtHost(const std::string& host, uint16_t port);

// Listens at a path. If a process that has ended left a socket there, it is replaced.
Result<Listener> ListenAtPath(const std::string& path);
// Removes the file of a Unix socket, unless another process has replaced it.
void RemoveSocketFile(const Listener& listener);

// A listener of a socket that another process has made.
Result<Listener> TakeListener(Descriptor socket);

// "127.0.0.1", "fe80::1" or, for a Unix socket, "".
std::string AddressText(const sockaddr& address);

// The address of this machine at which a connected socket ends, as in AddressText.
std::string LocalAddress(int socket);

}  // namespace cria::server
