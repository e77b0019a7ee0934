#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cria::cli {

// A number of bytes with a unit: K, M, G and T are powers of 1,000, Ki, Mi, Gi and Ti are powers of
// 1,024; a B may follow, and case makes no difference. "700M", "700 MB", "1.5Gi". A number of units
// may have up to six decimals. Nothing if the text has another form or the number is too large.
std::optional<uint64_t> ParseByteCount(std::string_view text);

}  // namespace cria::cli
