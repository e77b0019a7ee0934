#include "cli/terminal/printable.h"

#include "core/format.h"
#include "core/utf8.h"

namespace cria::cli {
namespace {

bool IsControl(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

// Whether a character reorders the text around it, or separates lines or paragraphs.
bool BreaksOrReorders(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const Utf8Character character = FirstUtf8Character(text);
    const bool is_valid = character.state == Utf8State::kValid;
    const size_t size = is_valid ? character.size_bytes : 1;
    const char32_t c = is_valid ? CodePoint(text, size) : static_cast<unsigned char>(text[0]);
    if (!is_valid || IsControl(c)) {
      printable += Format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (BreaksOrReorders(c)) {
      printable += Format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      printable += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return printable;
}

std::string Shortened(std::string_view text, size_t max_characters) {
  size_t bytes = 0;
  size_t kept_bytes = 0;  // Before the last character that is allowed.
  for (size_t i = 0; i < max_characters && bytes < text.size(); ++i) {
    kept_bytes = bytes;
    bytes += FirstUtf8Character(text.substr(bytes)).size_bytes;
  }
  if (bytes >= text.size()) return std::string(text);
  return std::string(text.substr(0, kept_bytes)) + "…";
}

}  // namespace cria::cli
