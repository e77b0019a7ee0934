#include "llm/check_prompt.h"

#include "core/format.h"

namespace cria {

Status CheckPrompt(std::span<const int32_t> tokens, const TokenModel& model) {
  if (tokens.empty())
    return Fail(ErrorCode::kUsage, "the prompt is empty: there is nothing to run");
  if (tokens.size() > model.context_tokens()) {
    return Fail(ErrorCode::kOutOfRange,
                Format("the prompt has {} tokens, but the context holds {}", tokens.size(),
                       model.context_tokens()),
                RemedyKind::kLargerContext);
  }
  for (const int32_t id : tokens) {
    if (id < 0 || static_cast<size_t>(id) >= model.vocab_size()) {
      return Fail(ErrorCode::kOutOfRange,
                  Format("token id {} is outside the vocabulary of {}", id, model.vocab_size()));
    }
  }
  return {};
}

}  // namespace cria
