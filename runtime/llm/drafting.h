#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cria/error.h"
#include "llm/draft_length.h"
#include "llm/drafter.h"
#include "llm/ngram_drafter.h"
#include "llm/sampler.h"

namespace cria {

struct DraftOptions {
  static constexpr size_t kMaxTokens = Sampler::kMaxAhead;

  size_t ngram_tokens = 0;  // Drafts come from n-grams of so many tokens; 0: none do.
  size_t max_tokens = 8;    // Maximum length of a draft.
  // A draft has at least this many tokens, whether it is expected to pay or not; 0: drafts that are
  // not expected to pay are not made. Shorter ones are not used.
  size_t min_tokens = 0;
  // A draft of a model ends before a token that the model gives a smaller probability.
  float min_probability = 0.0f;
  // Drafts come from the model's own layer for multi-token prediction, where n-grams find none.
  bool has_mtp = false;
  bool has_model = false;  // Or from another model (ResolveOptions).

  bool has_drafts() const { return ngram_tokens != 0 || has_mtp || has_model; }
};

// Fails with kUsage if an option is outside its range; the error names the option.
Status ValidateDraftOptions(const DraftOptions& options);

// Guesses the next tokens of one session's context, as many as are expected to pay (speculative
// decoding, Leviathan et al. 2023). A model that runs these tokens at once then tells for each
// whether it is what it would have generated.
class Drafting {
 public:
  // Bytes of memory that the constructor allocates.
  static uint64_t MemoryBytes(const DraftOptions& options, size_t context_tokens);
  // The options must be valid. `drafter` makes drafts where n-grams find none; null: nothing does.
  Drafting(const DraftOptions& options, size_t context_tokens,
           std::unique_ptr<Drafter> drafter = nullptr);

  // Returns what could follow the context, at most `max_tokens`. It is valid until the next call.
  // What followed earlier drafts is taken from the context.
  std::span<const int32_t> Draft(const DraftTarget& target, size_t max_tokens,
                                 const DraftCosts& costs);
  float min_probability() const { return options_.min_probability; }
  // Something other than the end of the context has changed.
  void Forget();

 private:
  std::span<const int32_t> DraftFromNgrams(std::span<const int32_t> context, size_t limit,
                                           const DraftCosts& costs);
  std::span<const int32_t> DraftFromLogits(const DraftTarget& target, size_t limit,
                                           const DraftCosts& costs);
  // Learns from what the context has in the place of the last draft.
  void Judge(std::span<const int32_t> context);
  // The first tokens of tokens_ are what Judge is going to compare.
  void JudgeLater(size_t position, size_t num_tokens, Acceptance& acceptance);
  Acceptance& AcceptanceOf(size_t match_tokens);

  const DraftOptions options_;
  std::optional<NgramDrafter> ngrams_;
  // How drafts from n-grams are accepted, by the number of tokens that were the same before.
  std::array<Acceptance, 4> ngram_acceptance_;
  const std::unique_ptr<Drafter> drafter_;
  Acceptance drafter_acceptance_;
  // While drafts of the drafter do not pay, it makes some that are only compared: so many tokens
  // are generated before the next one, and so many before the one after that.
  size_t num_quiet_ = 0;
  size_t next_quiet_ = 0;
  std::vector<int32_t> tokens_;  // The last draft, with room for the longest.

  // What is to be judged: drafts that were not run, too.
  size_t judged_position_ = 0;  // The next token's position in its context.
  std::span<const int32_t> judged_;
  Acceptance* judged_acceptance_ = nullptr;
};

}  // namespace cria
