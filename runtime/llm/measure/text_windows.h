#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"

namespace cria {

// The windows in which a long text is predicted. Each has an empty context before it, so that a
// window costs the same everywhere in the text. All of a text's tokens are predicted once, except
// for its first if the model has no BOS token.
class TextWindows {
 public:
  // `tokens` have no BOS and must outlive the result; a negative `bos_token_id` says that there is
  // none. `window_tokens` is how many tokens a context has, `max_window_tokens` how many it can
  // have. Fails with kUsage if there is nothing to predict or the window is too short or too long,
  // with kOutOfRange if a token is outside the vocabulary.
  static Result<TextWindows> Create(std::span<const int32_t> tokens, int32_t bos_token_id,
                                    size_t window_tokens, size_t max_window_tokens,
                                    size_t vocab_size);

  size_t num_windows() const { return (num_targets() + stride_ - 1) / stride_; }
  size_t num_targets() const { return tokens_.size() - first_target_; }
  // Targets that a window has, except for the last one, which may have fewer.
  size_t targets_per_window() const { return stride_; }

  // What window `index` reads: BOS, or the token before its targets if there is none, and all of
  // its targets but the last.
  std::vector<int32_t> Inputs(size_t index) const;
  // What it predicts: one target for each input.
  std::span<const int32_t> Targets(size_t index) const;

 private:
  TextWindows(std::span<const int32_t> tokens, int32_t bos_token_id, size_t stride)
      : tokens_(tokens),
        bos_token_id_(bos_token_id),
        stride_(stride),
        first_target_(bos_token_id < 0 ? 1 : 0) {}

  std::span<const int32_t> tokens_;
  int32_t bos_token_id_;
  size_t stride_;
  size_t first_target_;
};

}  // namespace cria
