#include "grammar/token_table.h"

#include <algorithm>
#include <vector>

#include "core/arena.h"
#include "core/utf8.h"

namespace cria::grammar {
namespace {

struct Text {
  TokenTable::Kind kind;
  size_t num_characters;
};

Text Classify(std::string_view piece) {
  Text text = {TokenTable::Kind::kPlain, 0};
  while (!piece.empty() && text.num_characters < TokenTable::kMaxCharacters) {
    size_t size_bytes = 1;
    if (!TokenTable::IsPlain(static_cast<uint8_t>(piece[0]))) {
      const Utf8Character character = FirstUtf8Character(piece);
      if (character.state != Utf8State::kValid || character.size_bytes == 1) break;
      text.kind = TokenTable::Kind::kWide;
      size_bytes = character.size_bytes;
    }
    piece.remove_prefix(size_bytes);
    ++text.num_characters;
  }
  return piece.empty() ? text : Text{TokenTable::Kind::kOther, 0};
}

size_t NumWordsOfIds(size_t vocab_size) { return (vocab_size + 63) / 64; }

}  // namespace

size_t TokenTable::MemoryBytes(size_t vocab_size) {
  // The long own bytes of most vocabularies are less than a byte for each token.
  const size_t long_bytes = (vocab_size + 7) / 8 * 8;
  const size_t words_bytes = NumWordsOfIds(vocab_size) * sizeof(uint64_t);
  return vocab_size * sizeof(Entry) + (kKinds.size() - 1 + kLengthBits) * words_bytes + long_bytes;
}

TokenTable::TokenTable(std::span<std::byte> memory, size_t vocab_size, const TokenPieces& pieces)
    : vocab_size_(vocab_size), pieces_(pieces) {
  std::span<Entry> entries = TakeArray<Entry>(memory, vocab_size);
  const auto take_words = [&] {
    const auto words = TakeArray<uint64_t>(memory, NumWordsOfIds(vocab_size));
    std::ranges::fill(words, 0);
    return words;
  };
  for (const Kind kind : {Kind::kPlain, Kind::kWide}) Of(kind).words = take_words();
  for (std::span<uint64_t>& words : length_words_) words = take_words();
  long_own_ = TakeArray<char>(memory, vocab_size);
  // Until this memory is needed for bytes of tokens, it has a number for each token: its kind plus
  // 1, or 0 if the token has no bytes or is in its place already.
  const std::span<char> kinds = long_own_;
  std::array<size_t, kKinds.size()> counts = {};
  for (size_t id = 0; id < vocab_size; ++id) {
    const std::string_view piece = Piece(static_cast<int32_t>(id));
    kinds[id] = 0;
    if (piece.empty()) continue;
    const Text text = Classify(piece);
    if (text.kind != Kind::kOther) AddLength(Of(text.kind), id, text.num_characters - 1);
    const auto kind = static_cast<size_t>(text.kind);
    ++counts[kind];
    kinds[id] = static_cast<char>(kind + 1);
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    orders_[i].entries = entries.first(counts[i]);
    entries = entries.subspan(counts[i]);
  }
  counts = {};
  const auto place = [&](size_t id) {
    if (id >= vocab_size || kinds[id] == 0) return;
    const auto kind = static_cast<size_t>(kinds[id] - 1);
    orders_[kind].entries[counts[kind]++].bits = id;
    kinds[id] = 0;
  };
  for (const uint32_t id : pieces.sorted_ids) place(id);
  const std::array<size_t, kKinds.size()> num_sorted = counts;
  for (size_t id = 0; id < vocab_size; ++id) place(id);
  for (size_t i = 0; i < orders_.size(); ++i) Finish(orders_[i], num_sorted[i]);
}

void TokenTable::AddLength(Order& order, size_t id, size_t length) {
  const uint64_t bit = uint64_t{1} << (id % 64);
  order.words[id / 64] |= bit;
  for (size_t i = 0; i < kLengthBits; ++i) {
    if (((length >> i) & 1) != 0) length_words_[i][id / 64] |= bit;
  }
  ++order.of_lengths[length].count;
  order.of_lengths[length].last = static_cast<int32_t>(id);
}

void TokenTable::Finish(Order& order, size_t num_sorted) {
  const auto is_before = [this](Entry one, Entry other) {
    const std::string_view piece = Piece(static_cast<int32_t>(one.id()));
    const int compared = piece.compare(Piece(static_cast<int32_t>(other.id())));
    return compared != 0 ? compared < 0 : one.id() < other.id();
  };
  const std::span<Entry> unsorted = order.entries.subspan(num_sorted);
  std::ranges::sort(unsorted, is_before);
  // The largest of both go to the end of their common place, one after the other. As
  // std::inplace_merge, this is 2 kB more code.
  std::vector<Entry> others(unsorted.begin(), unsorted.end());
  for (size_t end = order.entries.size(); !others.empty() && num_sorted > 0; --end) {
    const bool is_other = is_before(order.entries[num_sorted - 1], others.back());
    order.entries[end - 1] = is_other ? others.back() : order.entries[--num_sorted];
    if (is_other) others.pop_back();
  }
  std::ranges::copy(others, order.entries.begin());
  std::string_view last;
  for (Entry& entry : order.entries) {
    const std::string_view piece = Piece(static_cast<int32_t>(entry.id()));
    const size_t shared =
        static_cast<size_t>(std::ranges::mismatch(piece, last).in1 - piece.begin());
    const std::string_view own = piece.substr(shared);
    ++order.begins[static_cast<uint8_t>(piece[0]) + 1];
    entry.bits = entry.id() | (uint64_t{shared} << 24) | (uint64_t{own.size()} << 32);
    uint64_t last_bits = 0;
    if (own.size() <= kInlineBytes) {
      for (size_t i = 0; i < own.size(); ++i) {
        last_bits |= uint64_t{static_cast<uint8_t>(own[i])} << (8 * i);
      }
    } else if (num_long_own_ + own.size() > std::min(long_own_.size(), kNowhere)) {
      last_bits = kNowhere;
    } else {
      last_bits = num_long_own_;
      std::ranges::copy(own, long_own_.begin() + static_cast<ptrdiff_t>(num_long_own_));
      num_long_own_ += own.size();
    }
    entry.bits |= last_bits << 40;
    last = piece;
  }
  for (size_t byte = 0; byte < 256; ++byte) order.begins[byte + 1] += order.begins[byte];
}

std::string_view TokenTable::Piece(int32_t id) const {
  if (static_cast<size_t>(id) >= vocab_size_) return {};
  const std::string_view piece = pieces_(id);
  return piece.size() <= kMaxPieceBytes ? piece : std::string_view();
}

}  // namespace cria::grammar
