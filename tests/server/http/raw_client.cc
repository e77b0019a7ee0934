#include "server/http/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace cria::support {
namespace {

// A test that waits so long has failed.
constexpr timeval kPatience = {.tv_sec = 60, .tv_usec = 0};

RawClient Connected(int family, const sockaddr* address, socklen_t size) {
  const int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  RawClient result(client);
  if (connect(client, address, size) != 0) throw std::runtime_error("cannot connect");
  return result;
}

bool EqualsWithoutCase(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  });
}

}  // namespace

std::string RawResponse::header(std::string_view name) const {
  for (size_t begin = head.find("\r\n"); begin != head.npos;) {
    begin += 2;
    const size_t end = head.find("\r\n", begin);
    const std::string_view line = std::string_view(head).substr(begin, end - begin);
    const size_t colon = line.find(": ");
    if (colon != line.npos && EqualsWithoutCase(line.substr(0, colon), name)) {
      return std::string(line.substr(colon + 2));
    }
    begin = end;
  }
  return "";
}

RawClient::RawClient(RawClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), buffer_(std::move(other.buffer_)) {}

RawClient RawClient::ToPort(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return Connected(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

RawClient RawClient::ToPath(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return Connected(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

size_t RawClient::SendSome(std::string_view bytes) {
  const ssize_t count = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

void RawClient::ShutDownSending() { shutdown(socket_, SHUT_WR); }

void RawClient::Close() {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

void RawClient::Reset() {
  const linger hard = {.l_onoff = 1, .l_linger = 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  Close();
}

bool RawClient::Receive() {
  char bytes[16384];
  const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(count));
  return true;
}

std::string RawClient::ReadUntil(std::string_view text) {
  while (!buffer_.contains(text)) {
    if (!Receive()) return std::exchange(buffer_, "");
  }
  const size_t end = buffer_.find(text) + text.size();
  std::string result = buffer_.substr(0, end);
  buffer_.erase(0, end);
  return result;
}

bool RawClient::IsClosed() {
  for (;;) {
    char bytes[16384];
    const ssize_t count = recv(socket_, bytes, sizeof bytes, 0);
    if (count == 0) return true;
    // EAGAIN is the end of patience.
    if (count < 0) return errno == ECONNRESET;
  }
}

RawResponse RawClient::Read(bool has_body) {
  RawResponse response;
  response.head = ReadUntil("\r\n\r\n");
  if (!response.head.starts_with("HTTP/1.") || !response.head.ends_with("\r\n\r\n")) {
    return response;
  }
  std::from_chars(response.head.data() + 9, response.head.data() + 12, response.status);
  if (!has_body || response.status == 204) {
    response.is_whole = true;
  } else if (const std::string length = response.header("Content-Length"); !length.empty()) {
    const size_t size = std::stoul(length);
    while (buffer_.size() < size && Receive()) {
    }
    response.is_whole = buffer_.size() >= size;
    response.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
  } else if (response.header("Transfer-Encoding") == "chunked") {
    for (;;) {
      const std::string line = ReadUntil("\r\n");
      if (!line.ends_with("\r\n")) break;
      const size_t size = std::stoul(line, nullptr, 16);
      while (buffer_.size() < size + 2 && Receive()) {
      }
      response.body += buffer_.substr(0, size);
      if (buffer_.size() < size + 2) break;
      buffer_.erase(0, size + 2);
      response.is_whole = size == 0;
      if (size == 0) break;
    }
  } else {
    while (Receive()) {
    }
    response.body = std::exchange(buffer_, "");
    response.is_whole = true;
  }
  return response;
}

RawResponse RawClient::Ask(std::string_view request) {
  Send(request);
  return Read();
}

}  // namespace cria::support
