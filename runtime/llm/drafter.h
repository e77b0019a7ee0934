#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "llm/sampler.h"
#include "llm/seat.h"

namespace cria {

// What a draft is made for.
struct DraftTarget {
  Seat& seat;  // The session's, whose sequence has the context but for its last token.
  std::span<const int32_t> context;
  Sampler& sampler;  // Is going to choose. Its state does not change.
  // The draft ends before a token that its source, without the steps of the sampler, gives a
  // smaller probability.
  float min_probability = 0.0f;
};

// The tokens of a draft, which are chosen one after another.
class DraftedTokens {
 public:
  // `draft`, at least one, is the room for the tokens. Makes `tokens`, which has room for the draft
  // too, the context. All must outlive the object.
  DraftedTokens(const DraftTarget& target, std::span<int32_t> draft, std::vector<int32_t>& tokens);

  // Chooses the next token from its logits. Returns whether to go on with the one after it.
  Result<bool> Choose(std::span<float> logits);
  // The context and the tokens behind it that others are to follow.
  std::span<const int32_t> context() const { return tokens_; }
  // The longest that the draft can become.
  size_t max_size() const { return draft_.size(); }
  // How many were chosen, the one included that was not likely enough.
  size_t num_chosen() const { return num_chosen_; }
  size_t size() const { return num_chosen_ - (is_likely_ ? 0 : 1); }

 private:
  const DraftTarget& target_;
  const std::span<int32_t> draft_;
  std::vector<int32_t>& tokens_;
  size_t num_chosen_ = 0;
  bool is_likely_ = true;
};

// Makes drafts from logits. It chooses with the random numbers that the target's sampler is going
// to use (coupling by common random numbers), so that both choose the same token more often than
// two samplers would.
class Drafter {
 public:
  // Bytes of memory that the constructor allocates.
  static uint64_t MemoryBytes(size_t context_tokens) { return context_tokens * sizeof(int32_t); }
  // Contexts have up to `context_tokens`, their drafts included.
  explicit Drafter(size_t context_tokens) { tokens_.reserve(context_tokens); }
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;
  virtual ~Drafter() = default;

  // Writes what could follow the context to `draft`, and returns the number of tokens: 0 if there
  // is an error or no room.
  size_t Draft(const DraftTarget& target, std::span<int32_t> draft);
  // How long a token of a draft takes, learnt from the last ones; 0: not known.
  double seconds_per_token() const { return seconds_per_token_; }

 protected:
  // A draft of `num_tokens`, at least one, took so long.
  void LearnSeconds(double seconds, size_t num_tokens);

 private:
  // Chooses the tokens of a draft; the context has at least one.
  virtual Status Run(const DraftTarget& target, DraftedTokens& drafted) = 0;

  double seconds_per_token_ = 0.0;
  std::vector<int32_t> tokens_;  // The context and the draft; capacity for the longest context.
};

}  // namespace cria
