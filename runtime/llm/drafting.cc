#include "llm/drafting.h"

#include <algorithm>
#include <format>

namespace cria {

Status ValidateDraftOptions(const DraftOptions& options) {
  const auto check = [](const char* option, size_t value, size_t least, size_t most) -> Status {
    if (value >= least && value <= most) return {};
    return Fail(ErrorCode::kUsage,
                std::format("{} is {}, but must be {} to {}", option, value, least, most));
  };
  CRIA_RETURN_IF_ERROR(
      check("ngram_tokens", options.ngram_tokens, 0, NgramDrafter::kMaxNgramTokens));
  CRIA_RETURN_IF_ERROR(check("the longest draft", options.max_tokens, 1, DraftOptions::kMaxTokens));
  return check("the shortest draft", options.min_tokens, 0, options.max_tokens);
}

uint64_t Drafting::MemoryBytes(const DraftOptions& options, size_t context_tokens) {
  return options.ngram_tokens == 0 ? 0 : NgramDrafter::MemoryBytes(context_tokens);
}

Drafting::Drafting(const DraftOptions& options, size_t context_tokens)
    : options_(options),
      // What is expected before anything was compared.
      ngram_acceptance_{Acceptance(0.2), Acceptance(0.4), Acceptance(0.6), Acceptance(0.8)},
      tokens_(options.max_tokens) {
  if (options.ngram_tokens != 0) ngrams_.emplace(options.ngram_tokens, context_tokens);
}

std::span<const int32_t> Drafting::Draft(std::span<const int32_t> context, size_t max_tokens,
                                         const DraftCosts& costs) {
  Judge(context);
  const size_t limit = std::min(max_tokens, options_.max_tokens);
  if (limit == 0 || limit < options_.min_tokens || !ngrams_) return {};
  const std::span<int32_t> tokens = std::span(tokens_).first(limit);
  const NgramDrafter::Draft found = ngrams_->Find(context, tokens);
  if (found.num_tokens == 0) return {};
  Acceptance& acceptance = AcceptanceOf(found.match_tokens);
  judged_position_ = context.size();
  num_judged_ = found.num_tokens;
  judged_acceptance_ = &acceptance;
  return tokens.first(
      std::max(options_.min_tokens, BestDraftLength(acceptance.rate(), found.num_tokens, costs)));
}

void Drafting::Judge(std::span<const int32_t> context) {
  for (size_t i = 0; i < num_judged_ && judged_position_ + i < context.size(); ++i) {
    const bool is_right = tokens_[i] == context[judged_position_ + i];
    judged_acceptance_->Learn(is_right);
    if (!is_right) break;
  }
  num_judged_ = 0;
}

void Drafting::Forget() {
  num_judged_ = 0;
  if (ngrams_) ngrams_->Forget();
}

Acceptance& Drafting::AcceptanceOf(size_t match_tokens) {
  constexpr std::array<size_t, 3> kBounds = {4, 8, 16};
  const auto bound = std::ranges::upper_bound(kBounds, match_tokens);
  return ngram_acceptance_[static_cast<size_t>(bound - kBounds.begin())];
}

}  // namespace cria
