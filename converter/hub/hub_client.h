#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "converter/hub/http.h"
#include "converter/hub/url.h"
#include "cria/error.h"

namespace cria::hub {

// How often an exchange that a later try may mend is tried again: after pauses that double.
struct Retries {
  int max_tries = 6;
  std::chrono::milliseconds first_pause{500};
};

// What the hub answered, and the last answer of a chain of redirects.
struct HubAnswer {
  HttpAnswer answer;
  // What the hub itself says about a file, but not what servers say to which its redirects lead.
  // Empty or 0 if it does not say.
  std::string file_hash_digits;
  std::optional<uint64_t> file_bytes;
};

// Sends requests to one hub and follows its redirects as far as they are allowed. The token is sent
// to the hub's own origin alone.
class HubClient {
 public:
  // `endpoint` is the URL of the hub, such as "https://huggingface.co"; `token` may be empty.
  static Result<HubClient> Create(std::string_view endpoint, std::string_view token,
                                  std::string user_agent, const Retries& retries);

  const Url& endpoint() const { return endpoint_; }
  bool has_token() const { return !token_.empty(); }

  // `path` begins with a slash. Fails only if the sink fails or a redirect is not allowed.
  Result<HubAnswer> Get(std::string_view path, uint64_t first_byte, const ContentSink& sink);
  // Follows redirects only until the hub says something about the file.
  Result<HubAnswer> Head(std::string_view path);
  // The content of at most `max_bytes`. Tries again if that may help.
  Result<std::string> GetText(std::string_view path, uint64_t max_bytes, HubAnswer* answer);

  const Retries& retries() const { return retries_; }

 private:
  HubClient(HttpClient http, Url endpoint, std::string token, const Retries& retries)
      : http_(std::move(http)),
        endpoint_(std::move(endpoint)),
        token_(std::move(token)),
        retries_(retries) {}

  Result<HubAnswer> Follow(HttpRequest request, const ContentSink& sink);

  HttpClient http_;
  Url endpoint_;
  std::string token_;
  Retries retries_;
};

// The URL that a redirect of the hub leads to, if the connection is as safe there as the hub's own.
Result<Url> AllowedRedirect(const Url& endpoint, std::string_view location);

// Whether the same request may succeed later: the connection broke, or the hub is overloaded.
bool MayPassLater(const HttpAnswer& answer);

// Sleeps before the next try: twice as long for each that failed, and at least as long as the
// answer asks for, but at most a minute.
void PauseBeforeRetry(const Retries& retries, int num_failures, const HttpAnswer& answer);

}  // namespace cria::hub
