#include "converter/hub/url.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

#include "core/ascii.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria::hub {
namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype([](CURLU* url) { curl_url_cleanup(url); })>;

std::string PartOf(const CurlUrl& url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, CURLU_DEFAULT_PORT) != CURLUE_OK) return "";
  std::string copy = text;
  curl_free(text);
  return copy;
}

}  // namespace

bool Url::is_loopback() const {
  return host == "127.0.0.1" || host == "[::1]" || host == "localhost";
}

Result<Url> ParseUrl(std::string_view text, std::string_view what) {
  const CurlUrl parsed(curl_url());
  const std::string copy(text);
  if (parsed == nullptr ||
      curl_url_set(parsed.get(), CURLUPART_URL, copy.c_str(),
                   CURLU_DISALLOW_USER | CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK) {
    return Fail(ErrorCode::kUsage,
                Format("{} is \"{}\", which is not a URL that can be used", what, Quotable(text)));
  }
  Url url = {.text = copy,
             .scheme = PartOf(parsed, CURLUPART_SCHEME),
             .host = PartOf(parsed, CURLUPART_HOST),
             .port = PartOf(parsed, CURLUPART_PORT)};
  std::ranges::transform(url.host, url.host.begin(), ToLower);
  if (url.scheme != "https" && !(url.scheme == "http" && url.is_loopback())) {
    return Fail(ErrorCode::kUsage,
                Format("{} is \"{}\"; it must begin with https://, because only connections "
                       "inside this machine may be without TLS",
                       what, Quotable(text)));
  }
  return url;
}

std::string PercentEncode(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool is_unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                               (c >= '0' && c <= '9') || std::string_view("-_.~").contains(c) ||
                               (c == '/' && keep_slashes);
    if (is_unreserved) {
      encoded += c;
    } else {
      encoded += Format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace cria::hub
