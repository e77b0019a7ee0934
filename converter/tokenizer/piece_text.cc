#include "converter/tokenizer/piece_text.h"

#include "core/format.h"

namespace cria {

std::string WithPlainSpaces(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const size_t next = text.find(kVisibleSpace);
    plain += text.substr(0, next);
    if (next == std::string_view::npos) break;
    plain += ' ';
    text.remove_prefix(next + kVisibleSpace.size());
  }
  return plain;
}

std::string BytePieceName(uint8_t byte) { return Format("<0x{:02X}>", byte); }

std::optional<uint8_t> ByteOfPieceName(std::string_view piece) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return {};
  const size_t high = kDigits.find(piece[3]);
  const size_t low = kDigits.find(piece[4]);
  if (high == std::string_view::npos || low == std::string_view::npos) return {};
  return static_cast<uint8_t>(high * 16 + low);
}

}  // namespace cria
