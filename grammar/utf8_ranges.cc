// Sets of code points as expressions over bytes.
#include <algorithm>
#include <array>

#include "grammar/expressions.h"

namespace cria::grammar {
namespace {

// The code points whose first bytes are `mark | code_point >> 6 * num_last_bytes`. None of them is
// a surrogate.
struct Utf8Form {
  CodePointRange limits;
  size_t num_last_bytes;
  uint32_t mark;
};
constexpr auto kUtf8Forms = std::to_array<Utf8Form>({{{0, 0x7F}, 0, 0},
                                                     {{0x80, 0x7FF}, 1, 0xC0},
                                                     {{0x800, 0xD7FF}, 2, 0xE0},
                                                     {{0xE000, 0xFFFF}, 2, 0xE0},
                                                     {{0x10000, 0x10FFFF}, 3, 0xF0}});

// Bytes that may come next, and what follows them.
struct Utf8Branch {
  Node rest;
  ByteSet bytes;
};

// The branches at one place of characters: a byte after the first has 64 values, and first bytes
// have 52 different continuations at most, because that of all ASCII characters is the same.
class Utf8Branches {
 public:
  void Add(uint8_t byte, Node rest) {
    if (rest == Expressions::kNothing) return;
    size_t i = 0;
    while (i < size_ && branches_[i].rest != rest) ++i;
    if (i == size_) branches_[size_++] = {rest, {}};
    branches_[i].bytes.Add(byte);
  }

  Node Join(Expressions& expressions) const {
    std::array<Node, kMaxBranches> options;
    for (size_t i = 0; i < size_; ++i) {
      options[i] = expressions.Sequence(expressions.Bytes(branches_[i].bytes), branches_[i].rest);
    }
    return expressions.Choice({options.data(), size_});
  }

 private:
  static constexpr size_t kMaxBranches = 64;

  size_t size_ = 0;
  std::array<Utf8Branch, kMaxBranches> branches_;
};

// The code points that are in one of the ranges, sorted, and within the limits.
struct LimitedRanges {
  std::span<const CodePointRange> ranges;
  CodePointRange limits;

  // The first range that ends at the code point or behind it; of no code points if there is none.
  CodePointRange SkipTo(uint32_t code_point) {
    code_point = std::max(code_point, limits.first);
    while (!ranges.empty() && ranges.front().last < code_point) ranges = ranges.subspan(1);
    if (ranges.empty() || code_point > limits.last) return {limits.last + 1, limits.last};
    return {std::max(ranges.front().first, limits.first),
            std::min(ranges.front().last, limits.last)};
  }
};

class Utf8Tree {
 public:
  explicit Utf8Tree(Expressions& expressions) : expressions_(expressions) {
    ByteSet bytes;
    bytes.AddRange(0x80, 0xBF);
    for (size_t i = 1; i < whole_.size(); ++i) {
      whole_[i] = expressions.Sequence(expressions.Bytes(bytes), whole_[i - 1]);
    }
  }

  // The last bytes of those code points from `first` on that have all bytes before in common.
  Node LastBytes(LimitedRanges set, uint32_t first, size_t num_bytes) const {
    const uint32_t last = first + (uint32_t{1} << (6 * num_bytes)) - 1;
    CodePointRange range = set.SkipTo(first);
    if (range.first > range.last || range.first > last) return Expressions::kNothing;
    if (range.first <= first && last <= range.last) return whole_[num_bytes];
    if (num_bytes == 1) {
      ByteSet bytes;
      while (range.first <= range.last && range.first <= last) {
        bytes.AddRange(LastByte(std::max(range.first, first)),
                       LastByte(std::min(range.last, last)));
        if (range.last >= last) break;
        range = set.SkipTo(range.last + 1);
      }
      return expressions_.Bytes(bytes);
    }
    Utf8Branches branches;
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t begin = first + (i << (6 * (num_bytes - 1)));
      set.SkipTo(begin);
      branches.Add(static_cast<uint8_t>(0x80 | i), LastBytes(set, begin, num_bytes - 1));
    }
    return branches.Join(expressions_);
  }

 private:
  static uint8_t LastByte(uint32_t code_point) {
    return static_cast<uint8_t>(0x80 | (code_point & 0x3F));
  }

  Expressions& expressions_;
  std::array<Node, 4> whole_ = {Expressions::kEmpty};  // So many bytes of any value.
};

}  // namespace

// A tree by bytes in which equal branches are one, so that no two options begin with the same byte.
Node Expressions::Characters(std::span<const CodePointRange> ranges) {
  const Utf8Tree tree(*this);
  Utf8Branches branches;
  for (const Utf8Form& form : kUtf8Forms) {
    const size_t shift = 6 * form.num_last_bytes;
    LimitedRanges set = {ranges, form.limits};
    for (uint32_t byte = form.limits.first >> shift; byte <= form.limits.last >> shift; ++byte) {
      set.SkipTo(byte << shift);
      branches.Add(static_cast<uint8_t>(form.mark | byte),
                   tree.LastBytes(set, byte << shift, form.num_last_bytes));
    }
  }
  return branches.Join(*this);
}

}  // namespace cria::grammar
