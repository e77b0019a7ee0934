#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cria::grammar {

// The bytes of a vocabulary's tokens. Of those that are no text (control tokens, unused ids and the
// like), no bytes: these are never allowed.
struct TokenPieces {
  // The bytes must stay where they are.
  std::string_view (*function)(const void* context, int32_t id);
  const void* context;
  // Ids in the order of their bytes: the tokens that need not be sorted. The others come in any
  // order.
  std::span<const uint32_t> sorted_ids = {};

  std::string_view operator()(int32_t id) const { return function(context, id); }
};

// The tokens of a vocabulary in the order of their bytes, as masks need them: one after the other,
// each with what it shares with the one before. One for a model; all matchers share it.
//
// Most tokens of most vocabularies are a few characters that can stand in a JSON string as they are
// and mean nothing in most grammars. These are apart from the others, because many constraints
// allow all of them where they allow one.
class TokenTable {
 public:
  enum class Kind : uint8_t {
    kPlain,  // At most kMaxCharacters plain bytes.
    kWide,   // At most kMaxCharacters characters: some beyond ASCII, and else plain bytes.
    kOther,
  };
  static constexpr std::array<Kind, 3> kKinds = {Kind::kPlain, Kind::kWide, Kind::kOther};
  // Nearly all texts in vocabularies have fewer.
  static constexpr size_t kLengthBits = 4;
  static constexpr size_t kMaxCharacters = size_t{1} << kLengthBits;

  static constexpr size_t kMaxTokens = size_t{1} << 24;
  // Longer tokens are never allowed.
  static constexpr size_t kMaxPieceBytes = 255;
  static constexpr size_t kInlineBytes = 3;

  // 9 bytes and 6 bits for each token.
  static size_t MemoryBytes(size_t vocab_size);

  // `memory` must be aligned to 8 bytes and have MemoryBytes(vocab_size); the vocabulary has at
  // most kMaxTokens. What `pieces` needs must outlive the table.
  TokenTable(std::span<std::byte> memory, size_t vocab_size, const TokenPieces& pieces);

  // A token, from the lowest bits on: the id (24 bits), how many bytes it shares with the token
  // before (8), how many of its own follow these (8), and these, or where LongOwn finds them if
  // they are more than kInlineBytes (24).
  struct Entry {
    uint64_t bits;

    uint32_t id() const { return static_cast<uint32_t>(bits & 0xFFFFFF); }
    size_t shared() const { return (bits >> 24) & 0xFF; }
    size_t own() const { return (bits >> 32) & 0xFF; }
    uint8_t byte(size_t index) const { return static_cast<uint8_t>(bits >> (40 + 8 * index)); }
  };

  // The own bytes, if they are more than kInlineBytes.
  std::string_view LongOwn(Entry entry) const {
    const size_t offset = entry.bits >> 40;
    if (offset == kNowhere) return Piece(static_cast<int32_t>(entry.id())).substr(entry.shared());
    return {long_own_.data() + offset, entry.own()};
  }

  // The bytes of ASCII that can be printed, but for `"` and `\`.
  static constexpr bool IsPlain(uint8_t byte) {
    return byte >= kFirstPlain && byte <= kLastPlain && byte != '"' && byte != '\\';
  }
  static constexpr uint8_t kFirstPlain = ' ';
  static constexpr uint8_t kLastPlain = '~';

  // The tokens of this kind that begin with this byte.
  std::span<const Entry> Beginning(uint8_t byte, Kind kind) const {
    const Order& order = Of(kind);
    return order.entries.subspan(order.begins[byte], order.begins[byte + 1] - order.begins[byte]);
  }
  // The tokens of a kind that have the same number of characters.
  struct OfLength {
    uint32_t count = 0;
    int32_t last = -1;  // One of them.
  };
  // For kPlain and kWide. The tokens with `num_characters`, from 1 to kMaxCharacters.
  const OfLength& WithLength(Kind kind, size_t num_characters) const {
    return Of(kind).of_lengths[num_characters - 1];
  }
  // The tokens of this kind: bit id % 64 of word id / 64. Empty for kOther.
  std::span<const uint64_t> words(Kind kind) const { return Of(kind).words; }
  // The tokens of kPlain and kWide whose number of characters, less 1, has this bit.
  std::span<const uint64_t> length_words(size_t bit) const { return length_words_[bit]; }
  std::string_view Piece(int32_t id) const;
  size_t vocab_size() const { return vocab_size_; }

 private:
  struct Order {
    std::span<Entry> entries;
    std::array<uint32_t, 257> begins = {};  // By the first byte.
    std::span<uint64_t> words;
    std::array<OfLength, kMaxCharacters> of_lengths;
  };

  // Where there is no room for more own bytes; the vocabulary has them, too.
  static constexpr size_t kNowhere = 0xFFFFFF;

  const Order& Of(Kind kind) const { return orders_[static_cast<size_t>(kind)]; }
  Order& Of(Kind kind) { return orders_[static_cast<size_t>(kind)]; }
  // Notes that a token has `length` + 1 characters.
  void AddLength(Order& order, size_t id, size_t length);
  // `entries` begin with `num_sorted` ids in the order of their bytes; the others are sorted, too.
  void Finish(Order& order, size_t num_sorted);

  size_t vocab_size_;
  TokenPieces pieces_;
  std::span<char> long_own_;
  size_t num_long_own_ = 0;
  std::array<Order, kKinds.size()> orders_;
  std::array<std::span<uint64_t>, kLengthBits> length_words_;
};

}  // namespace cria::grammar
