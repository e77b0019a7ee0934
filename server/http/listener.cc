#include "server/http/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "core/format.h"

namespace cria::server {
namespace {

// Connections that wait to be accepted; the kernel bounds it further.
constexpr int kBacklog = 64;

bool IsLoopback(const sockaddr& address) {
  if (address.sa_family == AF_UNIX) return true;
  if (address.sa_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    return (ntohl(ipv4.sin_addr.s_addr) >> 24) == 127;
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ipv6) || (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr[12] == 127);
}

bool IsAnyAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr == INADDR_ANY;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

uint16_t PortOf(const sockaddr& address) {
  // The ports of both kinds are at the same place.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

struct Address {
  sockaddr_storage storage = {};
  socklen_t size = sizeof(sockaddr_storage);

  sockaddr& any() { return reinterpret_cast<sockaddr&>(storage); }
  const sockaddr& any() const { return reinterpret_cast<const sockaddr&>(storage); }
};

std::optional<Address> OwnAddress(int socket) {
  Address address;
  if (getsockname(socket, &address.any(), &address.size) != 0) return std::nullopt;
  return address;
}

std::string PlaceOf(const sockaddr& address) {
  const std::string text = AddressText(address);
  return Format("http://{}{}{}:{}", address.sa_family == AF_INET6 ? "[" : "", text,
                address.sa_family == AF_INET6 ? "]" : "", PortOf(address));
}

std::unexpected<Error> CannotListen(std::string_view where, int error) {
  const char* const help = error == EADDRINUSE
                               ? "; another process listens there: choose another port"
                           : error == EACCES        ? "; choose a port of 1024 or more"
                           : error == EADDRNOTAVAIL ? "; this machine does not have that address"
                                                    : "";
  return Fail(ErrorCode::kIo, Format("{}: cannot listen there: {}{}", where,
                                     static_cast<const char*>(std::strerror(error)), help));
}

Result<Listener> ListenAt(const Address& address, bool is_alone) {
  Descriptor descriptor(
      socket(address.any().sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (descriptor.is_open()) {
    setsockopt(descriptor.value(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address.any().sa_family == AF_INET6 && !is_alone) {
      // Another socket listens at the addresses of IPv4.
      setsockopt(descriptor.value(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
  }
  if (!descriptor.is_open() || bind(descriptor.value(), &address.any(), address.size) != 0 ||
      listen(descriptor.value(), kBacklog) != 0) {
    return CannotListen(PlaceOf(address.any()), errno);
  }
  return TakeListener(std::move(descriptor));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(value_, other.value_);
  return *this;
}

Descriptor::~Descriptor() {
  if (value_ >= 0) close(value_);
}

std::string AddressText(const sockaddr& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
  } else if (address.sa_family == AF_INET6) {
    const in6_addr& ipv6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&ipv6)) {
      inet_ntop(AF_INET, &ipv6.s6_addr[12], text, sizeof text);
    } else {
      inet_ntop(AF_INET6, &ipv6, text, sizeof text);
    }
  }
  return text;
}

std::string LocalAddress(int socket) {
  const std::optional<Address> address = OwnAddress(socket);
  return address ? AddressText(address->any()) : "";
}

Result<Listener> TakeListener(Descriptor socket) {
  int listens = 0;
  socklen_t size = sizeof listens;
  const std::optional<Address> address = OwnAddress(socket.value());
  if (!address || getsockopt(socket.value(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      listens == 0) {
    return Fail(ErrorCode::kUsage,
                Format("descriptor {} is not a socket that accepts connections", socket.value()));
  }
  Listener listener = {.is_local = IsLoopback(address->any())};
  if (address->any().sa_family == AF_UNIX) {
    const auto& unix_address = reinterpret_cast<const sockaddr_un&>(address->any());
    listener.place = Format("unix:{}", static_cast<const char*>(unix_address.sun_path));
  } else {
    listener.place = PlaceOf(address->any());
    if (!IsAnyAddress(address->any())) listener.host = AddressText(address->any());
  }
  listener.socket = std::move(socket);
  return listener;
}

Result<std::vector<Listener>> ListenAtHost(const std::string& host, uint16_t port) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // The address may be in brackets, as in a URL.
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  const std::string name = has_brackets ? host.substr(1, host.size() - 2) : host;
  const int failed = getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  if (failed != 0) {
    return Fail(ErrorCode::kUsage, Format("{}: is no address or name of this machine: {}", host,
                                          gai_strerror(failed)));
  }
  std::vector<Listener> listeners;
  std::optional<Error> first_error;
  uint16_t chosen_port = port;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next) {
    Address address;
    std::memcpy(&address.storage, next->ai_addr, next->ai_addrlen);
    address.size = next->ai_addrlen;
    reinterpret_cast<sockaddr_in&>(address.storage).sin_port = htons(chosen_port);
    Result<Listener> listener = ListenAt(address, /*is_alone=*/found->ai_next == nullptr);
    if (!listener) {
      if (!first_error) first_error = std::move(listener).error();
      continue;
    }
    if (const auto own = OwnAddress(listener->socket.value())) chosen_port = PortOf(own->any());
    if (!listener->host.empty()) listener->host = name;
    listeners.push_back(std::move(*listener));
  }
  // A machine without IPv6 has a name for its loopback all the same.
  if (listeners.empty()) return std::unexpected(*std::move(first_error));
  return listeners;
}

}  // namespace cria::server
