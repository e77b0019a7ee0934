#pragma once

#include <cstddef>
#include <span>

namespace cria {

// How often the next token of a draft is the model's, if those before it are: learnt from about the
// last 32 that were compared.
class Acceptance {
 public:
  // `expected` is assumed in the beginning and counts like two tokens.
  explicit Acceptance(double expected) : accepted_(2.0 * expected), compared_(2.0) {}

  void Learn(bool is_accepted);
  double rate() const { return accepted_ / compared_; }

 private:
  double accepted_;
  double compared_;
};

// What a draft costs.
struct DraftCosts {
  // Seconds of a Forward that runs 0, 1, … drafts, and generates a token of each of
  // `other_sequences` besides. 0: it was not measured yet.
  std::span<const double> seconds;
  size_t other_sequences = 0;
  double seconds_per_draft = 0.0;  // For making one token of it.
};

// How many tokens, up to `max_tokens`, to draft so that most tokens per second are generated, if
// each draft is accepted with this probability when those before it are (Leviathan et al. 2023).
size_t BestDraftLength(double acceptance, size_t max_tokens, const DraftCosts& costs);

}  // namespace cria
