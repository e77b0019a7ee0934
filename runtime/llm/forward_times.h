#pragma once

#include <chrono>
#include <cstddef>

#include "llm/row_costs.h"

namespace cria {

// How long a model's Forwards take, learnt from the last ones, and what a scheduler concludes.
class ForwardTimes {
 public:
  using Duration = std::chrono::steady_clock::duration;

  explicit ForwardTimes(size_t chunk_tokens);

  // Notes how long a Forward of so many tokens took, with a part of a prompt or of single tokens
  // and drafts alone. `delays_others`: other sequences wait for their next token.
  void Learn(size_t num_tokens, Duration time, bool has_prompt, bool delays_others);

  // How long to wait for sessions whose next token is likely to come soon.
  Duration Patience(bool has_prompt) const;
  // How many tokens of prompts are run while others decode.
  size_t prompt_tokens() const { return prompt_tokens_; }
  // The times of Forwards of single tokens and drafts.
  const RowCosts& costs() const { return costs_; }

 private:
  const size_t chunk_tokens_;
  Duration step_time_{0};  // The usual time of a Forward of single tokens; 0: not known.
  size_t prompt_tokens_;
  RowCosts costs_;
};

}  // namespace cria
