#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cria/error.h"
#include "llm/constraint.h"
#include "llm/generation_options.h"
#include "llm/sampler.h"

namespace cria {

// A token that was chosen from logits, or that the constraint gave no choice of.
struct ChosenToken {
  GeneratedToken token = {.id = -1};  // -1: nothing may follow.
  bool is_forced = false;
};

// Chooses tokens from rows of logits: a sampler and, if the options have one, a constraint. It
// chooses some tokens ahead, behind drafts; then Rewind goes back, and each of them that becomes
// part of the text is told to Advance and Accept.
class TokenChooser {
 public:
  // Both must outlive the object.
  TokenChooser(const GenerationOptions& options, Sampler& sampler)
      : options_(options), sampler_(sampler) {}

  Sampler& sampler() const { return sampler_; }
  // LogitRequest::num_candidates of the rows that are chosen from.
  size_t NumCandidates() const;
  // The first of the drafts that may follow the text, if `max_tokens` may still come.
  std::span<const int32_t> Allowed(std::span<const int32_t> drafts, size_t max_tokens) const;
  // The token that must follow without a choice. The id is -1 if there is a choice; nothing is
  // returned if the text is over.
  Result<std::optional<int32_t>> FindForced(size_t max_tokens) const;

  // The token after `history`, of which `max_tokens` may still come.
  Result<ChosenToken> Choose(std::span<float> logits, std::span<const int32_t> history,
                             size_t max_tokens);
  // Goes on to the token after this one. Returns false if the constraint cannot.
  bool Try(int32_t token);
  void Rewind();

  // The token is the next one of the text, but for a stop token.
  void Advance(const ChosenToken& chosen);
  Status Accept(int32_t token);

 private:
  const GenerationOptions& options_;
  Sampler& sampler_;
  // Since Rewind: choices that took a random number, and tokens that the constraint has been given.
  size_t num_drawn_ = 0;
  size_t num_tried_ = 0;
};

}  // namespace cria
