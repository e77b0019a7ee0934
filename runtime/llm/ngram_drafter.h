#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cria {

// Drafts what followed the last time when the context's last tokens occurred in it (prompt lookup,
// Saxena 2023): a table has the place behind the latest occurrence of each n-gram. What it finds is
// compared with the context, so that collisions and what was there before a context changed only
// lose drafts. Takes constant time per token of the context.
class NgramDrafter {
 public:
  static constexpr size_t kMaxNgramTokens = 16;
  // How many tokens before the draft are compared.
  static constexpr size_t kMaxMatchTokens = 32;

  // Bytes of the table.
  static uint64_t MemoryBytes(size_t context_tokens);
  // `ngram_tokens` are 1 to kMaxNgramTokens.
  NgramDrafter(size_t ngram_tokens, size_t context_tokens);

  struct Draft {
    size_t num_tokens = 0;
    size_t match_tokens = 0;  // So many tokens were the same before, up to kMaxMatchTokens.
  };
  // Fills `tokens` with a guess what follows `context`, which may have grown since the last call.
  // If the guess comes to the end of the context, it goes on in itself. Nothing, or all of
  // `tokens`.
  Draft Find(std::span<const int32_t> context, std::span<int32_t> tokens);

  // The beginning of the context may have changed.
  void Forget() { num_indexed_ = 0; }

 private:
  uint32_t& Entry(std::span<const int32_t> context, size_t end);
  // How many tokens before `source` are the same as at the end of the context.
  static size_t MatchTokens(std::span<const int32_t> context, size_t source);

  const size_t ngram_tokens_;
  std::vector<uint32_t> table_;  // A power of 2 of positions; 0: none.
  size_t num_indexed_ = 0;       // N-grams that end before or at this position are in the table.
  size_t last_source_ = 0;       // Where the last draft came from, and for which context.
  size_t last_length_ = 0;
};

}  // namespace cria
