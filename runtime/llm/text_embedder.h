#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "llm/scheduler.h"
#include "llm/seat.h"
#include "llm/turn.h"
#include "model/pooling.h"

namespace cria {

// What an embedding is made of.
struct EmbeddingForm {
  Pooling pooling = Pooling::kLast;
  bool is_normalized = true;  // Its Euclidean norm is 1, as of sentence-transformers' embeddings.
};

// Computes embeddings of texts: their pooled hidden states behind the last norm. Texts of several
// threads run as one batch, each with an embedder of its own. Nothing of a text stays in the cache,
// and nothing is taken from there: so an embedding does not depend on what ran before it.
class TextEmbedder {
 public:
  // `scheduler` must outlive the object.
  explicit TextEmbedder(Scheduler& scheduler) : scheduler_(scheduler) {}
  TextEmbedder(const TextEmbedder&) = delete;
  TextEmbedder& operator=(const TextEmbedder&) = delete;
  ~TextEmbedder();

  // Writes the embedding of `tokens`, at least one and at most the context, to `embedding`,
  // [hidden_size]. `cancel` may be null; it ends the call with kCancelled while it waits for others
  // and between chunks, and so does `on_prompt`. Allocates nothing.
  Status Embed(std::span<const int32_t> tokens, const EmbeddingForm& form,
               std::span<float> embedding, const std::atomic<bool>* cancel = nullptr,
               const PromptCallback& on_prompt = nullptr);

 private:
  Status Check(std::span<const int32_t> tokens, std::span<const float> embedding) const;
  // Embed between its Begin and End.
  Status Run(std::span<const int32_t> tokens, const EmbeddingForm& form, std::span<float> embedding,
             const std::atomic<bool>* cancel, const PromptCallback& on_prompt);

  Scheduler& scheduler_;
  Seat seat_;
};

}  // namespace cria
