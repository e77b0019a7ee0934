#include "cli/flags/escapes.h"

#include <charconv>
#include <cstddef>

namespace cria::cli {
namespace {

constexpr std::string_view kLetters = "ntr\\\"'";
constexpr std::string_view kMeanings = "\n\t\r\\\"'";

// The byte that two hexadecimal digits at the beginning of `digits` stand for, or -1.
int ReadHexByte(std::string_view digits) {
  digits = digits.substr(0, 2);
  unsigned int byte = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
  const bool is_byte = error == std::errc() && stop == digits.data() + 2;
  return is_byte ? static_cast<int>(byte) : -1;
}

}  // namespace

std::string ReadEscapes(std::string_view text) {
  std::string read;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '\\' && i + 1 < text.size();
    const std::string_view rest = text.substr(i + 1);
    const size_t letter = is_escape ? kLetters.find(rest.front()) : kLetters.npos;
    const int byte = is_escape && rest.starts_with('x') ? ReadHexByte(rest.substr(1)) : -1;
    if (letter != kLetters.npos) {
      read += kMeanings[letter];
      ++i;
    } else if (byte >= 0) {
      read += static_cast<char>(byte);
      i += 3;
    } else {
      read += text[i];
    }
  }
  return read;
}

}  // namespace cria::cli
