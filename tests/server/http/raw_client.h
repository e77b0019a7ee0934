#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace cria::support {

struct RawResponse {
  int status = 0;    // 0: none came.
  std::string head;  // With its status line, up to the empty line.
  std::string body;  // Chunks are joined.
  bool is_whole = false;

  // The value of a header, or "".
  std::string header(std::string_view name) const;
};

// A client that sends bytes as they are, so that it can be wrong and slow.
class RawClient {
 public:
  // Throws std::runtime_error if it cannot connect.
  static RawClient ToPort(int port);
  static RawClient ToPath(const std::string& path);
  explicit RawClient(int socket) : socket_(socket) {}
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() { Close(); }

  // Returns false if the other end is closed.
  bool Send(std::string_view bytes);
  // Sends what the socket takes without waiting, and returns how much that was.
  size_t SendSome(std::string_view bytes);
  // Sends no more.
  void ShutDownSending();
  void Close();
  // Ends the connection so that the other end gets an error (RST).
  void Reset();

  // Reads one response; what follows it stays for the next call. `has_body` is false for HEAD.
  RawResponse Read(bool has_body = true);
  // Send and Read.
  RawResponse Ask(std::string_view request);
  // Reads until `text` was read, or the connection ends. Returns what was read.
  std::string ReadUntil(std::string_view text);
  // Whether the other end closes the connection within the patience of tests; what comes before
  // that is dropped.
  bool IsClosed();

  int socket() const { return socket_; }

 private:
  bool Receive();

  int socket_ = -1;
  std::string buffer_;
};

}  // namespace cria::support
