#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/vocabulary.h"

namespace cria {

// Finds special tokens in text: the leftmost one, and the longest of those that begin there. Keeps
// a view of the vocabulary's tables, which must outlive the finder.
class SpecialTokenFinder {
 public:
  // Finds the tokens with these ids. An empty piece is never found; of equal pieces, the first in
  // `ids` is.
  SpecialTokenFinder(const Vocabulary& vocabulary, std::vector<uint32_t> ids);

  struct Match {
    size_t offset;
    size_t size_bytes;
    int32_t id;
  };
  // The first token at or after `from`.
  std::optional<Match> Find(std::string_view text, size_t from) const;

 private:
  std::string_view piece(size_t index) const;
  std::optional<Match> MatchAt(std::string_view text, size_t offset) const;

  const uint8_t* piece_bytes_;
  const uint32_t* piece_offsets_;
  std::vector<uint32_t> ids_;               // Sorted by the bytes of their pieces.
  std::array<uint32_t, 257> first_byte_{};  // ids_ with first byte b: first_byte_[b]..[b + 1].
};

}  // namespace cria
