#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cria {

// How tokenizer files represent the pieces of SentencePiece's vocabularies.

// U+2581, which represents a space.
inline constexpr std::string_view kVisibleSpace = "\xE2\x96\x81";

// `text` with each U+2581 replaced by a space.
std::string WithPlainSpaces(std::string_view text);

// "<0x0A>": the name of the piece for one byte. With lower-case digits it would be ordinary text.
std::string BytePieceName(uint8_t byte);
std::optional<uint8_t> ByteOfPieceName(std::string_view piece);

}  // namespace cria
