#include "llm/drafting.h"

#include <algorithm>

#include "core/format.h"

namespace cria {
namespace {

// How many tokens are generated between drafts of a model that are only compared: twice as many
// each time.
constexpr size_t kFirstQuietTokens = 32;
constexpr size_t kMaxQuietTokens = 512;

}  // namespace

Status ValidateDraftOptions(const DraftOptions& options) {
  const auto check = [](const char* option, size_t value, size_t least, size_t most) -> Status {
    if (value >= least && value <= most) return {};
    return Fail(ErrorCode::kUsage,
                Format("{} is {}, but must be {} to {}", option, value, least, most));
  };
  CRIA_RETURN_IF_ERROR(
      check("ngram_tokens", options.ngram_tokens, 0, NgramDrafter::kMaxNgramTokens));
  CRIA_RETURN_IF_ERROR(check("the longest draft", options.max_tokens, 1, DraftOptions::kMaxTokens));
  CRIA_RETURN_IF_ERROR(check("the shortest draft", options.min_tokens, 0, options.max_tokens));
  if (options.min_probability >= 0.0f && options.min_probability <= 1.0f) return {};
  return Fail(ErrorCode::kUsage, Format("the smallest probability of a draft is {}, but must "
                                        "be 0 to 1",
                                        options.min_probability));
}

uint64_t Drafting::MemoryBytes(const DraftOptions& options, size_t context_tokens) {
  return (options.ngram_tokens == 0 ? 0 : NgramDrafter::MemoryBytes(context_tokens)) +
         (options.has_mtp || options.has_model ? Drafter::MemoryBytes(context_tokens) : 0);
}

Drafting::Drafting(const DraftOptions& options, size_t context_tokens,
                   std::unique_ptr<Drafter> drafter)
    : options_(options),
      // What is expected before anything was compared.
      ngram_acceptance_{Acceptance(0.2), Acceptance(0.4), Acceptance(0.6), Acceptance(0.8)},
      drafter_(std::move(drafter)),
      drafter_acceptance_(0.7),
      next_quiet_(kFirstQuietTokens),
      tokens_(options.max_tokens) {
  if (options.ngram_tokens != 0) ngrams_.emplace(options.ngram_tokens, context_tokens);
}

std::span<const int32_t> Drafting::Draft(const DraftTarget& target, size_t max_tokens,
                                         const DraftCosts& costs) {
  Judge(target.context);
  const size_t limit = std::min(max_tokens, options_.max_tokens);
  if (limit == 0 || limit < options_.min_tokens) return {};
  if (ngrams_) {
    const std::span<const int32_t> draft = DraftFromNgrams(target.context, limit, costs);
    if (!draft.empty()) return draft;
  }
  return drafter_ == nullptr ? std::span<const int32_t>() : DraftFromLogits(target, limit, costs);
}

std::span<const int32_t> Drafting::DraftFromNgrams(std::span<const int32_t> context, size_t limit,
                                                   const DraftCosts& costs) {
  const std::span<int32_t> tokens = std::span(tokens_).first(limit);
  // If nothing is found, what is judged later stays as it is.
  const NgramDrafter::Draft found = ngrams_->Find(context, tokens);
  if (found.num_tokens == 0) return {};
  Acceptance& acceptance = AcceptanceOf(found.match_tokens);
  JudgeLater(context.size(), found.num_tokens, acceptance);
  return tokens.first(
      std::max(options_.min_tokens, BestDraftLength(acceptance.rate(), found.num_tokens, costs)));
}

std::span<const int32_t> Drafting::DraftFromLogits(const DraftTarget& target, size_t limit,
                                                   const DraftCosts& costs) {
  DraftCosts own_costs = costs;
  own_costs.seconds_per_draft = drafter_->seconds_per_token();
  const size_t best =
      std::max(options_.min_tokens, BestDraftLength(drafter_acceptance_.rate(), limit, own_costs));
  const bool is_measured = !costs.seconds.empty() && costs.seconds[0] > 0.0;
  if (best == 0 && !is_measured) return {};
  // Drafts that are only compared are compared to their end.
  if (best == 0 && !judged_.empty()) return {};
  if (best == 0 && num_quiet_ > 0) {
    --num_quiet_;
    return {};
  }
  constexpr size_t kComparedTokens = 2;
  const size_t length = best == 0 ? std::min(limit, kComparedTokens) : best;
  const size_t count = drafter_->Draft(target, std::span(tokens_).first(length));
  JudgeLater(target.context.size(), count, drafter_acceptance_);
  if (best == 0) {
    num_quiet_ = next_quiet_;
    next_quiet_ = std::min(2 * next_quiet_, kMaxQuietTokens);
    return {};
  }
  next_quiet_ = kFirstQuietTokens;
  return count < options_.min_tokens ? std::span<const int32_t>()
                                     : std::span<const int32_t>(tokens_).first(count);
}

void Drafting::JudgeLater(size_t position, size_t num_tokens, Acceptance& acceptance) {
  judged_position_ = position;
  judged_ = std::span(tokens_).first(num_tokens);
  judged_acceptance_ = &acceptance;
}

void Drafting::Judge(std::span<const int32_t> context) {
  while (!judged_.empty() && judged_position_ < context.size()) {
    const bool is_right = judged_.front() == context[judged_position_++];
    judged_acceptance_->Learn(is_right);
    judged_ = is_right ? judged_.subspan(1) : std::span<const int32_t>();
  }
}

void Drafting::Forget() {
  judged_ = {};
  if (ngrams_) ngrams_->Forget();
}

Acceptance& Drafting::AcceptanceOf(size_t match_tokens) {
  constexpr std::array<size_t, 3> kBounds = {4, 8, 16};
  const auto bound = std::ranges::upper_bound(kBounds, match_tokens);
  return ngram_acceptance_[static_cast<size_t>(bound - kBounds.begin())];
}

}  // namespace cria
