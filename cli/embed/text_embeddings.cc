#include "cli/embed/text_embeddings.h"

#include <utility>

#include "cli/parallel_sequences.h"
#include "core/format.h"
#include "llm/embedding_tokens.h"

namespace cria::cli {
namespace {

std::unexpected<Error> Stopped() {
  return Fail(ErrorCode::kCancelled, "stopped while embedding texts");
}

}  // namespace

Result<std::vector<int32_t>> TextEmbeddings::TokensOf(size_t index) const {
  Result<std::vector<int32_t>> tokens = EmbeddingTokens(engine_, texts_[index]);
  if (!tokens) {
    const Error& error = tokens.error();
    return Fail(error.code(), Format("text {}: {}", index + 1, error.message()), error.remedy());
  }
  if (!tokens->empty()) return tokens;
  return Fail(ErrorCode::kUsage, Format("text {} is empty: there is nothing to embed", index + 1));
}

Status TextEmbeddings::Check() {
  num_tokens_ = 0;
  for (size_t i = 0; i < texts_.size(); ++i) {
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, TokensOf(i));
    num_tokens_ += tokens.size();
    if (interrupt_.interrupted()) return Stopped();
  }
  return {};
}

Status TextEmbeddings::Run(const EmbeddingForm& form, const Callback& on_embedding) {
  const size_t num_threads = engine_.decoder().max_sequences();
  const Status run = RunSequences(num_threads, [&](size_t) {
    Status embedded = EmbedNext(form, on_embedding);
    if (!embedded) {
      const std::scoped_lock lock(mutex_);
      has_failed_ = true;
      changed_.notify_all();
    }
    return embedded;
  });
  bar_.Clear();
  return run || !interrupt_.interrupted() ? run : Stopped();
}

Status TextEmbeddings::EmbedNext(const EmbeddingForm& form, const Callback& on_embedding) {
  TextEmbedder embedder(engine_.scheduler());
  std::vector<float> embedding(engine_.decoder().hidden_size());
  while (true) {
    size_t index = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (has_failed_ || next_ == texts_.size()) return {};
      index = next_++;
    }
    CRIA_ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, TokensOf(index));
    CRIA_RETURN_IF_ERROR(embedder.Embed(tokens, form, embedding, interrupt_.flag()));
    CRIA_RETURN_IF_ERROR(AwaitTurn(index));
    on_embedding(index, embedding);
    const std::scoped_lock lock(mutex_);
    num_given_ = index + 1;
    num_given_tokens_ += tokens.size();
    if (shows_progress_) {
      bar_.Update(num_given_tokens_, num_tokens_, Format("{} of {}", num_given_, texts_.size()));
    }
    changed_.notify_all();
  }
}

Status TextEmbeddings::AwaitTurn(size_t index) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return has_failed_ || num_given_ == index; });
  return has_failed_ ? Status(Stopped()) : Status();
}

}  // namespace cria::cli
