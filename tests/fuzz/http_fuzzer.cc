// Any bytes as what a client sends, in pieces: the server must answer or close, and must forget the
// client when it has gone. No thread is started: the server is run step by step, on one end of a
// pair of sockets. The first byte says how the bytes are cut and when the client leaves.

#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/http/http_server.h"

namespace {

using namespace cria;
using namespace cria::server;
using namespace std::chrono_literals;

constexpr size_t kMaxBodyBytes = 4096;
constexpr std::string_view kKey = "secret";

struct Seen {
  std::string_view bytes;
  size_t num_requests = 0;
  std::vector<std::shared_ptr<HttpAnswer>> waiting;
};
Seen seen;

void Require(bool condition) {
  if (!condition) std::abort();
}

void Handle(HttpRequest request, std::shared_ptr<HttpAnswer> answer) {
  ++seen.num_requests;
  Require(request.path.starts_with('/') && !request.path.contains('\0'));
  Require(!request.method.empty() && request.body.size() <= kMaxBodyBytes);
  // Without the key, only the open path is reached.
  Require(request.path == "/open" || seen.bytes.contains(kKey));
  if (request.path == "/wait") {
    seen.waiting.push_back(std::move(answer));
  } else if (request.path == "/parts") {
    // No more than the buffer holds: Write must not block here.
    answer->Begin(200, "text/plain");
    Require(answer->Write("one"));
    Require(answer->Write(request.body.substr(0, 100)));
    answer->End();
  } else if (request.path != "/drop") {
    answer->Send(200, "text/plain", std::move(request.body));
  }
}

HttpServer& Server() {
  static const std::unique_ptr<HttpServer> server = [] {
    HttpOptions options;
    options.bounds.max_body_bytes = kMaxBodyBytes;
    options.bounds.head_bytes = 4096;
    options.access.keys = ApiKeys({std::string(kKey)});
    options.access.open_paths = {"/open"};
    auto created = HttpServer::Create(std::move(options), {}, Handle);
    Require(created.has_value());
    return std::move(*created);
  }();
  return *server;
}

// Reads what the server has sent. Every answer begins as one.
void ReadAnswers(int client, bool& is_first) {
  char bytes[4096];
  for (;;) {
    const ssize_t count = recv(client, bytes, sizeof bytes, MSG_DONTWAIT);
    if (count <= 0) return;
    const std::string_view answer(bytes, static_cast<size_t>(count));
    if (is_first) Require(answer.starts_with("HTTP/1."));
    is_first = false;
  }
}

void AnswerThoseWhoWait() {
  for (const auto& answer : std::exchange(seen.waiting, {})) {
    answer->Begin(200, "text/plain");
    answer->Write("late");
    answer->End();
  }
}

size_t Count(std::string_view bytes, std::string_view text) {
  size_t count = 0;
  for (size_t at = bytes.find(text); at != bytes.npos; at = bytes.find(text, at + 1)) ++count;
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece_bytes = size_t{1} << (data[0] & 15);
  const bool leaves_early = (data[0] & 16) != 0;
  const bool stops_sending = (data[0] & 32) != 0;
  seen = {.bytes = {reinterpret_cast<const char*>(data) + 1, size - 1}};
  int ends[2];
  Require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  Descriptor client(ends[0]);
  HttpServer& server = Server();
  server.AddConnection(Descriptor(ends[1]));
  bool is_first = true;
  // A run is short, also with pieces of one byte.
  constexpr size_t kMaxPieces = 64;
  size_t num_pieces = 0;
  for (std::string_view rest = seen.bytes; !rest.empty();) {
    const std::string_view piece = ++num_pieces < kMaxPieces ? rest.substr(0, piece_bytes) : rest;
    const ssize_t count =
        send(client.value(), piece.data(), piece.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN) break;
    if (count > 0) rest.remove_prefix(static_cast<size_t>(count));
    server.RunOnce(0ms);
    ReadAnswers(client.value(), is_first);
  }
  if (stops_sending) shutdown(client.value(), SHUT_WR);
  if (!leaves_early) {
    for (int i = 0; i < 4; ++i) {
      server.RunOnce(0ms);
      AnswerThoseWhoWait();
      ReadAnswers(client.value(), is_first);
    }
  }
  client = Descriptor();
  for (int i = 0; i < 100 && server.figures().num_connections != 0; ++i) server.RunOnce(0ms);
  const HttpServer::Figures figures = server.figures();
  Require(figures.num_connections == 0 && figures.num_requests == 0 && figures.body_bytes == 0);
  Require(seen.num_requests <= Count(seen.bytes, "HTTP/1."));
  for (const auto& answer : seen.waiting) Require(answer->gone());
  return 0;
}
