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

  // Notes how long a Forward took that ran so many single tokens and drafts, and so many tokens of
  // prompts.
  void Learn(size_t num_singles, size_t num_prompt_tokens, Duration time);

  // How long to wait for sessions whose next token is likely to come soon.
  Duration Patience(bool has_prompt) const;
  // How many tokens of prompts are run beside so many single tokens and drafts, at least one of
  // them. 0: none this time, so that it becomes known how long the single tokens take alone.
  size_t PromptTokensBeside(size_t num_singles) const;
  // The times of Forwards of single tokens and drafts.
  const RowCosts& costs() const { return costs_; }

 private:
  // Notes how long a Forward took that ran so many of each, at least one.
  void LearnPrompt(size_t num_singles, size_t num_prompt_tokens, double seconds);

  const size_t chunk_tokens_;
  Duration step_time_{0};  // The usual time of a Forward of single tokens; 0: not known.
  RowCosts costs_;
  double prompt_token_seconds_ = 0.0;  // What a prompt's token adds; 0: not known.
  size_t num_with_prompts_ = 0;        // Forwards since the last one of single tokens alone.
};

}  // namespace cria
