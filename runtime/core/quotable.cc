#include "core/quotable.h"

#include "core/utf8.h"

namespace cria {

std::string Quotable(std::string_view bytes) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string quotable;
  while (!bytes.empty()) {
    const Utf8Character character = FirstUtf8Character(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]);
    const bool is_shown = character.state == Utf8State::kValid && first >= 0x20 && first != 0x7F;
    const size_t taken_bytes = is_shown ? character.size_bytes : 1;
    const size_t shown_bytes = is_shown ? taken_bytes : std::string_view("\\xNN").size();
    if (quotable.size() + shown_bytes > kMaxQuotedBytes) return quotable + "...";
    if (is_shown) {
      quotable += bytes.substr(0, taken_bytes);
    } else {
      quotable += {'\\', 'x', kHexDigits[first >> 4], kHexDigits[first & 0xF]};
    }
    bytes.remove_prefix(taken_bytes);
  }
  return quotable;
}

}  // namespace cria
