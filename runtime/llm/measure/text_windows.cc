#include "llm/measure/text_windows.h"

#include <algorithm>

#include "core/format.h"

namespace cria {

Result<TextWindows> TextWindows::Create(std::span<const int32_t> tokens, int32_t bos_token_id,
                                        size_t window_tokens, size_t max_window_tokens,
                                        size_t vocab_size) {
  if (window_tokens < 2 || window_tokens > max_window_tokens) {
    return Fail(ErrorCode::kUsage, Format("a window of {} tokens is outside 2 to {}", window_tokens,
                                          max_window_tokens));
  }
  const auto check = [&](int32_t token) -> Status {
    if (token >= 0 && static_cast<size_t>(token) < vocab_size) return {};
    return Fail(ErrorCode::kOutOfRange,
                Format("token id {} is outside the vocabulary of {}", token, vocab_size));
  };
  for (const int32_t token : tokens) CRIA_RETURN_IF_ERROR(check(token));
  if (bos_token_id >= 0) CRIA_RETURN_IF_ERROR(check(bos_token_id));
  TextWindows windows(tokens, bos_token_id, window_tokens - 1);
  if (tokens.size() <= windows.first_target_) {
    return Fail(ErrorCode::kUsage, tokens.empty()
                                       ? "the text is empty: there is nothing to predict"
                                       : "the text has only one token, and the model no BOS token "
                                         "from which it could be predicted");
  }
  return windows;
}

std::vector<int32_t> TextWindows::Inputs(size_t index) const {
  const std::span<const int32_t> targets = Targets(index);
  std::vector<int32_t> inputs;
  inputs.reserve(targets.size());
  inputs.push_back(bos_token_id_ < 0 ? *(targets.data() - 1) : bos_token_id_);
  inputs.insert(inputs.end(), targets.begin(), targets.end() - 1);
  return inputs;
}

std::span<const int32_t> TextWindows::Targets(size_t index) const {
  const auto targets = tokens_.subspan(first_target_ + index * stride_);
  return targets.first(std::min(targets.size(), stride_));
}

}  // namespace cria
