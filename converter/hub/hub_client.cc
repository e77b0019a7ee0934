#include "converter/hub/hub_client.h"

#include <algorithm>
#include <thread>

#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

constexpr int kMaxRedirects = 5;
constexpr uint64_t kMaxPauseSeconds = 60;
constexpr size_t kMaxTokenBytes = 4096;

Status IgnoreContent(const HttpAnswer&, std::span<const std::byte>) { return {}; }

// The digits of an ETag; "" if it is weak, so that it need not be a hash of the content.
std::string DigitsOf(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag.contains('"') ? "" : std::string(etag);
}

// For a file in its storage of large files, the hub has these headers in a redirect; for another
// file, they are those of the content itself.
void TakeFileHeaders(const HttpAnswer& answer, HubAnswer& result) {
  if (const std::string_view etag = answer.header("x-linked-etag"); !etag.empty()) {
    result.file_hash_digits = DigitsOf(etag);
  } else if (answer.is_success() && result.file_hash_digits.empty()) {
    result.file_hash_digits = DigitsOf(answer.header("etag"));
  }
  if (const auto bytes = answer.number_in_header("x-linked-size")) {
    result.file_bytes = bytes;
  } else if (answer.status == 200 && !result.file_bytes) {
    result.file_bytes = answer.number_in_header("content-length");
  }
}

}  // namespace

Result<HubClient> HubClient::Create(std::string_view endpoint, std::string_view token,
                                    std::string user_agent, const Retries& retries) {
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  CRIA_ASSIGN_OR_RETURN(Url url, ParseUrl(endpoint, "the address of the hub, HF_ENDPOINT,"));
  if (url.text.find_first_of("?#") != std::string::npos) {
    return Fail(ErrorCode::kUsage, Format("the address of the hub is \"{}\"; it must not have "
                                          "a query or a fragment",
                                          Quotable(endpoint)));
  }
  if (token.size() > kMaxTokenBytes ||
      std::ranges::any_of(token, [](char c) { return c <= ' ' || c > '~'; })) {
    return Fail(ErrorCode::kUsage, "the token in HF_TOKEN has characters that no token has");
  }
  CRIA_ASSIGN_OR_RETURN(HttpClient http, HttpClient::Create(std::move(user_agent)));
  return HubClient(std::move(http), std::move(url), std::string(token), retries);
}

Result<HubAnswer> HubClient::Follow(HttpRequest request, const ContentSink& sink) {
  HubAnswer result;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    const bool is_hub = request.url.origin() == endpoint_.origin();
    request.bearer_token = is_hub ? token_ : "";
    CRIA_ASSIGN_OR_RETURN(result.answer,
                          http_.Exchange(request, [&](const HttpAnswer& answer, auto bytes) {
                            if (is_hub) TakeFileHeaders(answer, result);
                            return sink(answer, bytes);
                          }));
    if (is_hub) TakeFileHeaders(result.answer, result);
    const bool is_enough = request.is_head && result.file_bytes && !result.file_hash_digits.empty();
    if (!result.answer.is_redirect() || is_enough) return result;
    CRIA_ASSIGN_OR_RETURN(request.url, AllowedRedirect(endpoint_, result.answer.location));
  }
  return Fail(ErrorCode::kIo, Format("{} redirects more than {} times; it may be in a circle",
                                     endpoint_.text, kMaxRedirects));
}

Result<HubAnswer> HubClient::Get(std::string_view path, uint64_t first_byte,
                                 const ContentSink& sink) {
  CRIA_ASSIGN_OR_RETURN(Url url, ParseUrl(endpoint_.text + std::string(path), "a file of the hub"));
  return Follow({.url = std::move(url), .first_byte = first_byte}, sink);
}

Result<HubAnswer> HubClient::Head(std::string_view path) {
  CRIA_ASSIGN_OR_RETURN(Url url, ParseUrl(endpoint_.text + std::string(path), "a file of the hub"));
  return Follow({.url = std::move(url), .is_head = true}, IgnoreContent);
}

Result<std::string> HubClient::GetText(std::string_view path, uint64_t max_bytes,
                                       HubAnswer* answer) {
  for (int failures = 0;; ++failures) {
    std::string text;
    const auto append = [&](const HttpAnswer&, std::span<const std::byte> bytes) -> Status {
      if (bytes.size() > max_bytes - text.size()) {
        return Fail(ErrorCode::kInvalidFile,
                    Format("{} answered with more than {} bytes", endpoint_.text, max_bytes));
      }
      text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return {};
    };
    CRIA_ASSIGN_OR_RETURN(*answer, Get(path, 0, append));
    const bool is_offline = answer->answer.breakdown &&
                            answer->answer.breakdown->kind == Breakdown::Kind::kNoConnection;
    if (!MayPassLater(answer->answer) || is_offline || failures + 1 >= retries_.max_tries) {
      return text;
    }
    PauseBeforeRetry(retries_, failures, answer->answer);
  }
}

Result<Url> AllowedRedirect(const Url& endpoint, std::string_view location) {
  const auto refuse = [&](std::string_view what) {
    return Fail(ErrorCode::kIo, Format("{} redirects to \"{}\", which {}", endpoint.text,
                                       Quotable(location), what));
  };
  auto url = ParseUrl(location, "a redirect");
  if (!url) return refuse("is neither https nor a connection inside this machine");
  if (endpoint.scheme == "https" && url->scheme != "https") return refuse("is not https");
  if (endpoint.scheme == "http" && !url->is_loopback()) return refuse("is not on this machine");
  return url;
}

bool MayPassLater(const HttpAnswer& answer) {
  if (answer.breakdown) {
    return answer.breakdown->kind == Breakdown::Kind::kBroken ||
           answer.breakdown->kind == Breakdown::Kind::kNoConnection;
  }
  constexpr int kRequestTimeout = 408;
  constexpr int kTooManyRequests = 429;
  return answer.status >= 500 || answer.status == kRequestTimeout ||
         answer.status == kTooManyRequests;
}

void PauseBeforeRetry(const Retries& retries, int num_failures, const HttpAnswer& answer) {
  constexpr int kMaxDoublings = 10;
  std::chrono::milliseconds pause =
      retries.first_pause * (1 << std::min(num_failures, kMaxDoublings));
  if (const auto seconds = answer.number_in_header("retry-after")) {
    pause = std::max<std::chrono::milliseconds>(
        pause, std::chrono::seconds(std::min(*seconds, kMaxPauseSeconds)));
  }
  std::this_thread::sleep_for(
      std::min<std::chrono::milliseconds>(pause, std::chrono::seconds(kMaxPauseSeconds)));
}

}  // namespace cria::hub
