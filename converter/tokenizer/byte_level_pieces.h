#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "converter/tokenizer/vocabulary_builder.h"

namespace cria {

// How tokenizer files represent the pieces of byte-level vocabularies.

// The alphabet: printable bytes of Latin-1 represent themselves, and the others, in order, are
// represented by the characters from U+0100 on.
class ByteAlphabet {
 public:
  ByteAlphabet();

  // The bytes that `text`, which must be valid UTF-8, represents; nothing if it has other
  // characters.
  std::optional<std::string> Decode(std::string_view text) const;

 private:
  std::array<int16_t, 0x100 + 68> byte_by_character_;
};

// The ids of pieces by their names in a file, for rules that name pieces.
class PieceNames {
 public:
  // False if the name already exists; it keeps its first id.
  bool Add(std::string_view name, uint32_t id) { return ids_.emplace(name, id).second; }

  // The rule that merges two pieces into one; nothing if one of the three pieces is missing.
  std::optional<DraftMerge> FindMerge(std::string_view left, std::string_view right,
                                      uint32_t rank) const;

 private:
  std::unordered_map<std::string, uint32_t> ids_;
};

}  // namespace cria
