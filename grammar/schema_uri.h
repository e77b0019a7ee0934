#pragma once

#include <string>
#include <string_view>

namespace cria::grammar {

// The absolute form of a reference relative to `base` (RFC 3986, section 5.2), without a fragment.
// A base may be relative itself, or empty.
std::string ResolveUri(std::string_view base, std::string_view reference);

// %XX replaced by the bytes that they stand for.
std::string PercentDecoded(std::string_view text);

}  // namespace cria::grammar
