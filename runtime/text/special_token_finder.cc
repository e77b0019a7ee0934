#include "text/special_token_finder.h"

#include <algorithm>
#include <utility>

namespace cria {

SpecialTokenFinder::SpecialTokenFinder(const Vocabulary& vocabulary, std::vector<uint32_t> ids)
    : piece_bytes_(vocabulary.piece_bytes.data()),
      piece_offsets_(vocabulary.piece_offsets.data()),
      ids_(std::move(ids)) {
  std::erase_if(ids_, [&](uint32_t id) { return vocabulary.piece(id).empty(); });
  std::ranges::stable_sort(ids_, {}, [&](uint32_t id) { return vocabulary.piece(id); });
  const auto repeated =
      std::ranges::unique(ids_, {}, [&](uint32_t id) { return vocabulary.piece(id); });
  ids_.erase(repeated.begin(), repeated.end());
  for (size_t i = 0; i < ids_.size(); ++i) {
    ++first_byte_[static_cast<uint8_t>(piece(i)[0]) + size_t{1}];
  }
  for (size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] += first_byte_[byte];
}

std::string_view SpecialTokenFinder::piece(size_t index) const {
  const uint32_t begin = piece_offsets_[ids_[index]];
  return {reinterpret_cast<const char*>(piece_bytes_) + begin,
          piece_offsets_[ids_[index] + 1] - begin};
}

std::optional<SpecialTokenFinder::Match> SpecialTokenFinder::Find(std::string_view text,
                                                                  size_t from) const {
  if (ids_.empty()) return std::nullopt;
  for (size_t offset = from; offset < text.size(); ++offset) {
    const auto byte = static_cast<uint8_t>(text[offset]);
    if (first_byte_[byte] == first_byte_[byte + size_t{1}]) continue;
    if (const auto match = MatchAt(text, offset)) return match;
  }
  return std::nullopt;
}

// Narrows the range of pieces that match the text, byte by byte. A piece that matches completely is
// the first of its range, because longer pieces that begin with it are sorted after it.
std::optional<SpecialTokenFinder::Match> SpecialTokenFinder::MatchAt(std::string_view text,
                                                                     size_t offset) const {
  const auto first = static_cast<uint8_t>(text[offset]);
  size_t begin = first_byte_[first];
  size_t end = first_byte_[first + size_t{1}];
  std::optional<Match> longest;
  for (size_t depth = 1; begin < end; ++depth) {
    if (piece(begin).size() == depth) {
      longest = Match{offset, depth, static_cast<int32_t>(ids_[begin])};
      ++begin;
    }
    if (offset + depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[offset + depth]);
    const auto byte_at = [&](uint32_t id) { return piece_bytes_[piece_offsets_[id] + depth]; };
    const auto range =
        std::ranges::equal_range(ids_.begin() + static_cast<ptrdiff_t>(begin),
                                 ids_.begin() + static_cast<ptrdiff_t>(end), byte, {}, byte_at);
    begin = static_cast<size_t>(range.begin() - ids_.begin());
    end = static_cast<size_t>(range.end() - ids_.begin());
  }
  return longest;
}

}  // namespace cria
