#pragma once

#include <thread>

namespace cria::support {

// A server at 127.0.0.1 that speaks TLS with a certificate that it signed itself, so that no client
// trusts it.
class UntrustedTlsServer {
 public:
  UntrustedTlsServer();  // Throws std::runtime_error on failure.
  ~UntrustedTlsServer();
  UntrustedTlsServer(const UntrustedTlsServer&) = delete;
  UntrustedTlsServer& operator=(const UntrustedTlsServer&) = delete;

  int port() const { return port_; }

 private:
  void Serve();

  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace cria::support
