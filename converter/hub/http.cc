#include "converter/hub/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <charconv>

#include "core/ascii.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

constexpr long kConnectSeconds = 30;
// A connection without any data for this time is broken.
constexpr long kSilentSeconds = 60;
constexpr size_t kMaxHeaderBytes = size_t{64} << 10;

// What the callbacks of libcurl work on.
struct Transfer {
  CURL* handle;
  HttpAnswer& answer;
  const ContentSink& sink;
  size_t num_header_bytes = 0;
  Status sink_status = {};
};

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpaces);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kSpaces) - first + 1);
}

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  transfer.num_header_bytes += line.size();
  if (transfer.num_header_bytes > kMaxHeaderBytes) return 0;
  if (line.starts_with("HTTP/")) {  // Also after the headers of an interim answer.
    transfer.answer.headers.clear();
    return line.size();
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string name(Trimmed(line.substr(0, colon)));
  std::ranges::transform(name, name.begin(), ToLower);
  transfer.answer.headers.insert_or_assign(std::move(name), Trimmed(line.substr(colon + 1)));
  return line.size();
}

void TakeStatus(CURL* handle, HttpAnswer& answer) {
  long status = 0;
  curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
}

size_t TakeContent(char* data, size_t size, size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  TakeStatus(transfer.handle, transfer.answer);
  // The content of redirects and errors is not needed, however long it is.
  if (!transfer.answer.is_success()) return 0;
  transfer.sink_status =
      transfer.sink(transfer.answer, std::as_bytes(std::span(data, size * count)));
  return transfer.sink_status ? size * count : 0;
}

std::optional<Breakdown> BreakdownOf(CURLcode code, const HttpRequest& request,
                                     const Transfer& transfer) {
  const std::string& host = request.url.host;
  using Kind = Breakdown::Kind;
  switch (code) {
    case CURLE_OK:
      return std::nullopt;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Breakdown{Kind::kNoConnection,
                       Format("the host {} was not found; is this machine connected to a "
                              "network?",
                              host)};
    case CURLE_COULDNT_CONNECT:
      return Breakdown{Kind::kNoConnection,
                       Format("{} port {} does not accept connections; is this machine "
                              "connected to a network?",
                              host, request.url.port)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return Breakdown{Kind::kNoTrust,
                       Format("the certificate of {} is not trusted ({}); check this "
                              "machine's clock and its certificates of authorities",
                              host, curl_easy_strerror(code))};
    case CURLE_SSL_CONNECT_ERROR:
      return Breakdown{Kind::kNoTrust, Format("{} port {} does not speak TLS as https needs it",
                                              host, request.url.port)};
    case CURLE_OPERATION_TIMEDOUT:
      return Breakdown{Kind::kBroken, Format("{} did not send anything for a long time", host)};
    case CURLE_WRITE_ERROR:
      // Our own callback ended the exchange, after the headers of an answer without success or
      // because these were too long.
      if (transfer.num_header_bytes <= kMaxHeaderBytes) return std::nullopt;
      return Breakdown{Kind::kMalformed,
                       Format("{} sent more than {} bytes of headers", host, kMaxHeaderBytes)};
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_TOO_LARGE:
      return Breakdown{Kind::kMalformed,
                       Format("{} did not answer with HTTP ({})", host, curl_easy_strerror(code))};
    default:
      return Breakdown{Kind::kBroken,
                       Format("the connection to {} broke ({})", host, curl_easy_strerror(code))};
  }
}

}  // namespace

std::string_view HttpAnswer::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : found->second;
}

std::optional<uint64_t> HttpAnswer::number_in_header(std::string_view name) const {
  const std::string_view text = header(name);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

void HttpClient::CloseHandle::operator()(void* handle) const { curl_easy_cleanup(handle); }

Result<HttpClient> HttpClient::Create(std::string user_agent) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  Handle handle(initialized == CURLE_OK ? curl_easy_init() : nullptr);
  if (handle == nullptr) {
    return Fail(ErrorCode::kInternal, "libcurl, which downloads need, could not be initialized");
  }
  return HttpClient(std::move(handle), std::move(user_agent));
}

Result<HttpAnswer> HttpClient::Exchange(const HttpRequest& request, const ContentSink& sink) {
  CURL* const handle = handle_.get();
  HttpAnswer answer;
  Transfer transfer = {.handle = handle, .answer = answer, .sink = sink};
  curl_easy_reset(handle);
  curl_easy_setopt(handle, CURLOPT_URL, request.url.text.c_str());
  curl_easy_setopt(handle, CURLOPT_USERAGENT, user_agent_.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR,
                   request.url.is_loopback() ? "http,https" : "https");
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl_easy_setopt(handle, CURLOPT_NOBODY, request.is_head ? 1L : 0L);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, TakeContent);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  // A proxy, which the environment may name, could not reach this machine's own ports.
  if (request.url.is_loopback()) curl_easy_setopt(handle, CURLOPT_PROXY, "");
  const std::string range = Format("{}-", request.first_byte);
  if (request.first_byte != 0) curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
  if (!request.bearer_token.empty()) {
    curl_easy_setopt(handle, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(handle, CURLOPT_XOAUTH2_BEARER, request.bearer_token.c_str());
  }
  const CURLcode code = curl_easy_perform(handle);
  CRIA_RETURN_IF_ERROR(std::move(transfer.sink_status));
  TakeStatus(handle, answer);
  char* location = nullptr;
  if (curl_easy_getinfo(handle, CURLINFO_REDIRECT_URL, &location) == CURLE_OK &&
      location != nullptr) {
    answer.location = location;
  }
  answer.breakdown = BreakdownOf(code, request, transfer);
  return answer;
}

}  // namespace cria::hub
