#include "support/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <format>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace cria::support {
namespace {

struct Listener {
  int socket;
  int port;
};

Listener Listen() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listener < 0 || bind(listener, any, size) != 0 || listen(listener, 16) != 0 ||
      getsockname(listener, any, &size) != 0) {
    throw std::runtime_error("cannot listen at 127.0.0.1");
  }
  return {listener, ntohs(address.sin_port)};
}

bool SendAll(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

HttpRequest Parse(const std::string& head) {
  std::istringstream lines(head);
  HttpRequest request;
  std::string line;
  std::getline(lines, line);
  std::istringstream(line) >> request.method >> request.target;
  while (std::getline(lines, line)) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    request.headers[name] = line.substr(colon + 2, line.find('\r') - colon - 2);
  }
  return request;
}

}  // namespace

std::string HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

HttpServer::HttpServer(Handler handler) : handler_(std::move(handler)) {
  const Listener listener = Listen();
  listener_ = listener.socket;
  port_ = listener.port;
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  stops_ = true;
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& connection : connections_) connection.join();
  close(listener_);
}

std::vector<HttpRequest> HttpServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpServer::Accept() {
  while (true) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    connections_.emplace_back([this, connection] { Serve(connection); });
  }
}

void HttpServer::Serve(int connection) {
  std::string head;
  while (!stops_ && !head.contains("\r\n\r\n")) {
    // Polls, so that an idle client does not keep the server from ending.
    pollfd waiting = {.fd = connection, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 50) == 0) continue;
    char buffer[4096];
    const ssize_t count = recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) break;
    head.append(buffer, static_cast<size_t>(count));
    constexpr char kTlsHandshake = 0x16;
    if (head.front() == kTlsHandshake) {
      SendAll(connection, "HTTP/1.1 400 This is not TLS\r\n\r\n");
      break;
    }
  }
  if (head.contains("\r\n\r\n")) {
    const HttpRequest request = Parse(head);
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
    }
    const HttpResponse response = handler_(request);
    std::string text = std::format("HTTP/1.1 {} Answer\r\nConnection: close\r\n", response.status);
    for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
    text += std::format("Content-Length: {}\r\n\r\n",
                        response.claimed_bytes.value_or(response.body.size()));
    std::string_view body = response.body;
    if (response.breaks_after_bytes) body = body.substr(0, *response.breaks_after_bytes);
    if (request.method == "HEAD") body = {};
    bool is_open = SendAll(connection, response.raw.empty() ? text : response.raw);
    while (is_open && !stops_ && !body.empty() && response.raw.empty()) {
      const std::string_view part = body.substr(0, response.part_bytes);
      is_open = SendAll(connection, part);
      body.remove_prefix(part.size());
      if (response.after_part) response.after_part();
    }
  }
  shutdown(connection, SHUT_RDWR);
  close(connection);
}

int UnusedPort() {
  const Listener listener = Listen();
  close(listener.socket);
  return listener.port;
}

}  // namespace cria::support
