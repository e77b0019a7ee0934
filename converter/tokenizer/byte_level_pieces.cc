#include "converter/tokenizer/byte_level_pieces.h"

#include "core/utf8.h"

namespace cria {

ByteAlphabet::ByteAlphabet() {
  byte_by_character_.fill(-1);
  char32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    byte_by_character_[is_printable ? byte : next++] = static_cast<int16_t>(byte);
  }
}

std::optional<std::string> ByteAlphabet::Decode(std::string_view text) const {
  std::string bytes;
  while (!text.empty()) {
    const size_t size_bytes = FirstUtf8Character(text).size_bytes;
    const char32_t character = CodePoint(text, size_bytes);
    if (character >= byte_by_character_.size() || byte_by_character_[character] < 0) return {};
    bytes.push_back(static_cast<char>(byte_by_character_[character]));
    text.remove_prefix(size_bytes);
  }
  return bytes;
}

std::optional<DraftMerge> PieceNames::FindMerge(std::string_view left, std::string_view right,
                                                uint32_t rank) const {
  std::string name(left);
  const auto left_id = ids_.find(name);
  const auto merged_id = ids_.find(name += right);
  const auto right_id = ids_.find(std::string(right));
  if (left_id == ids_.end() || right_id == ids_.end() || merged_id == ids_.end()) return {};
  return DraftMerge{left_id->second, right_id->second, merged_id->second, rank};
}

}  // namespace cria
