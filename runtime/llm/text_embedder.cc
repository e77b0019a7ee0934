#include "llm/text_embedder.h"

#include "core/format.h"
#include "llm/check_prompt.h"
#include "llm/pooled_hidden.h"

namespace cria {

TextEmbedder::~TextEmbedder() { scheduler_.Leave(seat_); }

Status TextEmbedder::Embed(std::span<const int32_t> tokens, const EmbeddingForm& form,
                           std::span<float> embedding, const std::atomic<bool>* cancel,
                           const PromptCallback& on_prompt) {
  CRIA_RETURN_IF_ERROR(Check(tokens, embedding));
  CRIA_RETURN_IF_ERROR(
      scheduler_.Begin(seat_, {.reserved_tokens = tokens.size()}, cancel).transform([](size_t) {}));
  const Status run = Run(tokens, form, embedding, cancel, on_prompt);
  // This empties the sequence. If it fails, the text stays in the cache until its room is needed.
  static_cast<void>(scheduler_.Begin(seat_, {}, nullptr));
  scheduler_.End(seat_);
  return run;
}

Status TextEmbedder::Check(std::span<const int32_t> tokens,
                           std::span<const float> embedding) const {
  const TokenModel& model = scheduler_.model();
  CRIA_RETURN_IF_ERROR(CheckPrompt(tokens, model));
  if (embedding.size() == model.hidden_size()) return {};
  return Fail(ErrorCode::kUsage, Format("an embedding has {} numbers, and there is room for {}",
                                        model.hidden_size(), embedding.size()));
}

Status TextEmbedder::Run(std::span<const int32_t> tokens, const EmbeddingForm& form,
                         std::span<float> embedding, const std::atomic<bool>* cancel,
                         const PromptCallback& on_prompt) {
  PooledHidden pooled(form.pooling, embedding);
  const size_t num_tokens = tokens.size();
  while (true) {
    const bool goes_on = !on_prompt || on_prompt(num_tokens - tokens.size(), num_tokens);
    if (!goes_on || (cancel != nullptr && cancel->load(std::memory_order_relaxed))) {
      return Fail(ErrorCode::kCancelled, "stopped while reading the text");
    }
    if (tokens.empty()) break;
    CRIA_ASSIGN_OR_RETURN(const Scheduler::Progress progress,
                          scheduler_.Run(seat_, tokens, {.pooled = &pooled, .cancel = cancel}));
    tokens = tokens.subspan(progress.num_tokens);
  }
  pooled.Finish();
  if (form.is_normalized) PooledHidden::Normalize(embedding);
  return {};
}

}  // namespace cria
