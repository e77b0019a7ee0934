#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/http/api_keys.h"
#include "server/http/refusal.h"

namespace cria::server {

struct AccessOptions {
  // Names and addresses by which clients may call the server, beside those of this machine for
  // itself. A page of another site that makes its own name lead here (DNS rebinding) would send
  // that name.
  std::vector<std::string> allowed_hosts;
  // Origins of pages on other sites that may use the server: "https://chat.example". Others may
  // not, and no header for other origins (CORS) is sent unless one of these asks.
  std::vector<std::string> allowed_origins;
  ApiKeys keys;
  // Paths that need no key.
  std::vector<std::string> open_paths;
};

// What of a request decides about access. Absent: there is no such header.
struct RequestHead {
  std::string_view method;
  std::string_view path;
  size_t num_hosts = 0;  // How many headers named Host there are.
  std::string_view host;
  size_t num_origins = 0;
  std::optional<std::string_view> origin;
  std::optional<std::string_view> authorization;
  std::optional<std::string_view> api_key;
  // Asks, before a page's request, whether the page may send it.
  bool is_preflight = false;
  // Address of this machine to which the client is connected; empty if it has none.
  std::string_view local_address;
};

// Who may send requests.
class Access {
 public:
  explicit Access(AccessOptions options);

  // Why the request is refused; nothing if it is allowed.
  std::optional<Refusal> Check(const RequestHead& head) const;

  // Whether a page of this origin, which is another site's, may read the answer.
  bool AllowsOrigin(std::string_view origin) const;

  void AllowHost(std::string_view host);

 private:
  std::optional<Refusal> CheckHost(const RequestHead& head) const;
  std::optional<Refusal> CheckOrigin(const RequestHead& head) const;
  std::optional<Refusal> CheckKey(const RequestHead& head) const;

  AccessOptions options_;
};

}  // namespace cria::server
