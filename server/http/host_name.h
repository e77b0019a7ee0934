#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cria::server {

// The host of "board.local:8080", "[::1]:8080" or "localhost", in lower case, without the port and
// without brackets. Nothing if the text has another form, such as that of a list or of a URL.
std::optional<std::string> HostOf(std::string_view authority);

// The authority of an origin, as a browser sends it: "board.local:8080" of
// "http://board.local:8080". Nothing for "null" and for schemes other than http and https.
std::optional<std::string_view> AuthorityOfOrigin(std::string_view origin);

// Equal but for case, which names of hosts and of headers do not distinguish. ASCII only.
bool EqualsIgnoringCase(std::string_view one, std::string_view other);

}  // namespace cria::server
