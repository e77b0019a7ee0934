#include "grammar/token_table.h"

#include <algorithm>

#include "core/arena.h"
#include "core/utf8.h"

namespace cria::grammar {
namespace {

// While sorting: above the id, the first bytes of the token, from the highest bits on.
constexpr size_t kKeyBytes = 5;

uint64_t SortingKey(std::string_view piece, size_t id) {
  uint64_t key = 0;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    key = (key << 8) | (i < piece.size() ? static_cast<uint8_t>(piece[i]) : 0);
  }
  return (key << 24) | id;
}

struct Text {
  TokenTable::Kind kind;
  size_t num_characters;
};

Text Classify(std::string_view piece) {
  Text text = {TokenTable::Kind::kPlain, 0};
  while (!piece.empty() && text.num_characters < TokenTable::kMaxCharacters) {
    const Utf8Character character = FirstUtf8Character(piece);
    if (character.state != Utf8State::kValid) break;
    if (character.size_bytes > 1) {
      text.kind = TokenTable::Kind::kWide;
    } else if (!TokenTable::IsPlain(static_cast<uint8_t>(piece[0]))) {
      break;
    }
    piece.remove_prefix(character.size_bytes);
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
  // Once to know how many there are of each kind, and once to put them into their places.
  std::array<size_t, kKinds.size()> counts = {};
  for (size_t id = 0; id < vocab_size; ++id) {
    const std::string_view piece = Piece(static_cast<int32_t>(id));
    if (!piece.empty()) ++counts[static_cast<size_t>(Classify(piece).kind)];
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    orders_[i].entries = entries.first(counts[i]);
    entries = entries.subspan(counts[i]);
  }
  for (size_t id = vocab_size; id-- > 0;) {
    const std::string_view piece = Piece(static_cast<int32_t>(id));
    if (piece.empty()) continue;
    const Text text = Classify(piece);
    Order& order = Of(text.kind);
    if (text.kind != Kind::kOther) AddLength(order, id, text.num_characters - 1);
    order.entries[--counts[static_cast<size_t>(text.kind)]].bits = SortingKey(piece, id);
    ++order.begins[static_cast<uint8_t>(piece[0]) + 1];
  }
  for (Order& order : orders_) Sort(order);
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

void TokenTable::Sort(Order& order) {
  for (size_t byte = 0; byte < 256; ++byte) order.begins[byte + 1] += order.begins[byte];
  std::ranges::sort(order.entries, [this](Entry one, Entry other) {
    const uint64_t key = one.bits >> 24;
    const uint64_t other_key = other.bits >> 24;
    if (key != other_key) return key < other_key;
    const std::string_view piece = Piece(static_cast<int32_t>(one.id()));
    const int compared = piece.compare(Piece(static_cast<int32_t>(other.id())));
    return compared != 0 ? compared < 0 : one.id() < other.id();
  });
  std::string_view last;
  for (Entry& entry : order.entries) {
    const std::string_view piece = Piece(static_cast<int32_t>(entry.id()));
    const size_t shared =
        static_cast<size_t>(std::ranges::mismatch(piece, last).in1 - piece.begin());
    const std::string_view own = piece.substr(shared);
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
}

std::string_view TokenTable::Piece(int32_t id) const {
  if (static_cast<size_t>(id) >= vocab_size_) return {};
  const std::string_view piece = pieces_(id);
  return piece.size() <= kMaxPieceBytes ? piece : std::string_view();
}

}  // namespace cria::grammar
