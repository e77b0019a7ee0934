#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "converter/hub/url.h"
#include "cria/error.h"

namespace cria::hub {

struct HttpRequest {
  Url url;
  bool is_head = false;      // Asks for the headers alone.
  uint64_t first_byte = 0;   // Not 0: asks for the content from there on.
  std::string bearer_token;  // Empty: none is sent.
};

// Why an exchange did not come to its end.
struct Breakdown {
  enum class Kind : uint8_t {
    kNoConnection,  // There is no such host, or it does not answer.
    kNoTrust,       // TLS failed, for example because of the certificate.
    kBroken,        // The connection ended early, or nothing came for a long time.
    kMalformed,     // The answer is not HTTP, or its headers are too long.
  };
  Kind kind;
  std::string sentence;  // Names the host.
};

struct HttpAnswer {
  int status = 0;  // 0: no answer came.
  // Names are in lower case.
  std::map<std::string, std::string, std::less<>> headers;
  std::string location;  // The absolute URL that a redirect leads to.
  std::optional<Breakdown> breakdown;

  bool is_success() const { return status >= 200 && status < 300; }
  bool is_redirect() const { return status >= 300 && status < 400 && !location.empty(); }
  // "" if there is no such header.
  std::string_view header(std::string_view name) const;
  std::optional<uint64_t> number_in_header(std::string_view name) const;
};

// Takes the next bytes of the content of a successful answer, whose headers are known. An error
// ends the exchange.
using ContentSink =
    std::function<Status(const HttpAnswer& answer, std::span<const std::byte> bytes)>;

// Speaks HTTP, one request at a time. It follows no redirects.
class HttpClient {
 public:
  static Result<HttpClient> Create(std::string user_agent);

  // Fails if the sink fails. What goes wrong with the connection is in `breakdown`.
  Result<HttpAnswer> Exchange(const HttpRequest& request, const ContentSink& sink);

 private:
  struct CloseHandle {
    void operator()(void* handle) const;
  };
  using Handle = std::unique_ptr<void, CloseHandle>;

  HttpClient(Handle handle, std::string user_agent)
      : handle_(std::move(handle)), user_agent_(std::move(user_agent)) {}

  Handle handle_;  // libcurl's; keeps connections for later requests.
  std::string user_agent_;
};

}  // namespace cria::hub
