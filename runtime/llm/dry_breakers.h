#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "text/tokenizer.h"

namespace cria {

// Finds texts at which repetitions end, by llama.cpp's rule: a breaker is a token that contains the
// whole text, or a token that ends with the text's beginning and is followed by the tokens of the
// text's rest.
class DryBreakers {
  using Tail = std::vector<int32_t>;
  struct Sequence {
    int32_t head;
    uint32_t tail;  // Index in tails_.
  };

 public:
  static constexpr size_t kMaxTexts = 16;
  static constexpr size_t kMaxTextBytes = 40;
  // How many breakers may have several tokens.
  static constexpr size_t kMaxSequences = 8192;
  // Longer rests are cut off.
  static constexpr size_t kMaxTailTokens = 20;

  // Fails with kUsage if the texts are beyond these bounds; the error begins with
  // "dry_sequence_breakers".
  static Result<DryBreakers> Create(const Tokenizer& tokenizer, std::span<const std::string> texts);

  static constexpr uint64_t MemoryBytes(size_t vocab_size) {
    return vocab_size / 8 + kMaxSequences * sizeof(Sequence) +
           kMaxTexts * kMaxTextBytes * (sizeof(Tail) + kMaxTailTokens * sizeof(int32_t));
  }

  // Whether the token alone contains one of the texts.
  bool IsBreaker(int32_t token) const;
  // Returns how many of the tokens are behind the last breaker: all if there is none.
  size_t CountBehind(std::span<const int32_t> tokens) const;

 private:
  void Add(std::string_view piece, int32_t id, std::string_view text, size_t first_tail);
  // Returns the length of the longest breaker in `tokens` that begins with the token at `at`; 0 if
  // there is none.
  size_t LengthAt(std::span<const int32_t> tokens, size_t at) const;

  std::vector<uint64_t> single_;     // A bit for each id.
  std::vector<Sequence> sequences_;  // Sorted by head.
  std::vector<Tail> tails_;
};

}  // namespace cria
