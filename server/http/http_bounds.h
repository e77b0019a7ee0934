#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cria::server {

// What clients may take of the server.
struct HttpBounds {
  size_t max_connections = 64;
  // What one connection has for the head of a request, and for what libmicrohttpd keeps besides. A
  // longer head is refused.
  size_t head_bytes = 16 << 10;
  // What of an answer in parts waits for its reader.
  size_t answer_buffer_bytes = 16 << 10;
  // What the kernel keeps of an answer until its client takes it. Otherwise this could become
  // megabytes of memory for each connection, and the model would write answers for clients that
  // read nothing.
  int socket_buffer_bytes = 64 << 10;
  // The bodies of one request, and of all requests that are not yet answered.
  size_t max_body_bytes = 1 << 20;
  size_t total_body_bytes = 4 << 20;

  // For the head of a request, from its connection on, and for its body.
  std::chrono::milliseconds request_timeout{30'000};
  // How long an answer waits until its client takes the next answer_buffer_bytes.
  std::chrono::milliseconds answer_timeout{30'000};
  // How long a connection without a request is kept.
  std::chrono::milliseconds idle_timeout{60'000};
};

// The most memory that connections take: each with its heads, buffer and objects, and the bodies of
// requests, of which the handler may keep a second form.
constexpr uint64_t HttpConnectionBytes(const HttpBounds& bounds) {
  // An estimate, above what a server with 200 connections takes: the objects of a connection, here
  // and in libmicrohttpd, and the block that libmicrohttpd fills from the buffer.
  constexpr uint64_t kObjectBytes = 6 << 10;
  return bounds.max_connections * (bounds.head_bytes + bounds.answer_buffer_bytes + kObjectBytes);
}

constexpr uint64_t HttpBodyBytes(const HttpBounds& bounds) { return 2 * bounds.total_body_bytes; }

}  // namespace cria::server
