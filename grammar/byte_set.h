#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace cria::grammar {

// A set of bytes.
struct ByteSet {
  std::array<uint64_t, 4> words = {};

  void Add(uint8_t byte) { words[byte / 64] |= uint64_t{1} << (byte % 64); }
  // Both are included; nothing if `last` is less than `first`.
  void AddRange(uint8_t first, uint8_t last) {
    for (unsigned byte = first; byte <= last; ++byte) Add(static_cast<uint8_t>(byte));
  }
  bool Has(uint8_t byte) const { return ((words[byte / 64] >> (byte % 64)) & 1) != 0; }
  bool empty() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }
  size_t size() const {
    size_t count = 0;
    for (const uint64_t word : words) count += static_cast<size_t>(std::popcount(word));
    return count;
  }

  ByteSet& operator|=(const ByteSet& other) {
    for (size_t i = 0; i < words.size(); ++i) words[i] |= other.words[i];
    return *this;
  }
  ByteSet& operator&=(const ByteSet& other) {
    for (size_t i = 0; i < words.size(); ++i) words[i] &= other.words[i];
    return *this;
  }
  friend ByteSet operator|(ByteSet one, const ByteSet& other) { return one |= other; }
  friend ByteSet operator&(ByteSet one, const ByteSet& other) { return one &= other; }
  ByteSet operator~() const { return {{~words[0], ~words[1], ~words[2], ~words[3]}}; }
  bool operator==(const ByteSet&) const = default;
};

}  // namespace cria::grammar
