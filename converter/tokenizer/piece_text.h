#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cria {

// How tokenizer files write the pieces of SentencePiece's vocabularies.

// U+2581, which stands for a space.
inline constexpr std::string_view kVisibleSpace = "\xE2\x96\x81";

// `text` with each visible space as a space.
std::string WithPlainSpaces(std::string_view text);

// "<0x0A>": the piece of one byte. Its digits are capital; otherwise it is ordinary text.
std::string BytePieceName(uint8_t byte);
std::optional<uint8_t> ByteOfPieceName(std::string_view piece);

}  // namespace cria
