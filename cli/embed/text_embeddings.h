#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "llm/text_embedder.h"

namespace cria::cli {

// Embeds texts, several at the same time, so that one pass over the weights serves all of them.
class TextEmbeddings {
 public:
  // Called with the embedding of each text, in their order; the numbers, [hidden_size], may be
  // changed, and are valid during the call. One call is made at a time, by any thread.
  using Callback = std::function<void(size_t index, std::span<float> embedding)>;

  // The engine and the texts must outlive the object.
  TextEmbeddings(Engine& engine, std::span<const std::string_view> texts, bool shows_progress)
      : engine_(engine), texts_(texts), shows_progress_(shows_progress) {}

  // Fails if a text has no tokens, or more than the context holds. Must be called before Run, so
  // that nothing is printed of texts of which one is wrong.
  Status Check();
  // Ctrl-C ends it with kCancelled.
  Status Run(const EmbeddingForm& form, const Callback& on_embedding);

  // After Check: the tokens of all texts.
  size_t num_tokens() const { return num_tokens_; }

 private:
  Result<std::vector<int32_t>> TokensOf(size_t index) const;
  // What one thread does. After an error, no thread takes another text.
  Status EmbedNext(const EmbeddingForm& form, const Callback& on_embedding);
  // Waits until all earlier texts were given to the callback; fails if they never will be.
  Status AwaitTurn(size_t index);

  Engine& engine_;
  const std::span<const std::string_view> texts_;
  const bool shows_progress_;
  size_t num_tokens_ = 0;
  const InterruptGuard interrupt_;
  std::mutex mutex_;  // Protects everything below.
  std::condition_variable changed_;
  size_t next_ = 0;
  size_t num_given_ = 0;
  size_t num_given_tokens_ = 0;
  bool has_failed_ = false;
  ProgressBar bar_{"embed", std::chrono::seconds(1)};
};

}  // namespace cria::cli
