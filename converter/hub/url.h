#pragma once

#include <string>
#include <string_view>

#include "cria/error.h"

namespace cria::hub {

struct Url {
  std::string text;    // The whole URL.
  std::string scheme;  // "https" or "http".
  std::string host;    // In lower case; an IPv6 address is in brackets.
  std::string port;    // Also if it is the scheme's own.

  // Whether `host` is this machine: 127.0.0.1, [::1] or localhost. Only to it may a connection be
  // without TLS.
  bool is_loopback() const;
  // "https://huggingface.co:443"
  std::string origin() const { return scheme + "://" + host + ":" + port; }
};

// Fails if the text is not a URL, has a user name or a password, or is neither https nor http to
// this machine. `what` names the URL in the error sentence.
Result<Url> ParseUrl(std::string_view text, std::string_view what);

// Replaces everything but unreserved characters by %NN; slashes stay if `keep_slashes`.
std::string PercentEncode(std::string_view text, bool keep_slashes);

}  // namespace cria::hub
