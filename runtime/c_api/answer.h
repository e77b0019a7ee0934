#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "c_api/generation.h"
#include "c_api/handles.h"
#include "llm/completion.h"

namespace cria::c_api {

// A copy of the caller's callbacks; null means none.
Result<cria_callbacks> ReadCallbacks(const cria_callbacks* callbacks);

// Fails if the result cannot be filled. Null is allowed.
Status CheckResult(const cria_result* result);

// One call that reads a prompt and perhaps answers it: passes what happens to the caller, who may
// stop it, and measures its time.
class Answer {
 public:
  // What of a chat the answer uses: whether it is to stop, and where the size of the context is
  // kept.
  struct OfChat {
    const std::atomic<bool>& cancel;
    std::atomic<uint32_t>& context_used;
  };

  // Starts the clock. `chat` may be null; it, the model and the session must outlive the answer.
  Answer(LoadedModel& model, Session& session, const cria_callbacks& callbacks, const OfChat* chat);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;

  // Options that are valid as long as this object. Null: for a prompt that is only read. The
  // constraint may be null.
  GenerationOptions Options(Generation* generation, Constraint* constraint = nullptr);
  TextCallback Receiver() {
    return [this](std::string_view text) { TakeText(text); };
  }

  // Fills `result` unless it is null.
  Status Finish(StopReason reason, cria_result* result);

 private:
  using Clock = std::chrono::steady_clock;

  // Whether the call goes on, as far as other threads and callbacks say.
  bool GoesOn();
  bool TakeProgress(size_t done_tokens, size_t total_tokens);
  void TakeToken(const GeneratedToken& token, std::string_view text);
  void TakeText(std::string_view text);
  double SecondsSinceBegin() const;

  LoadedModel& model_;
  Session& session_;
  const cria_callbacks callbacks_;
  const OfChat* const chat_;
  const uint32_t cancels_at_begin_;
  const Clock::time_point begin_ = Clock::now();
  std::string text_;  // Ends with the zero byte that callers expect; capacity for the longest text.
  double first_text_seconds_ = 0.0;
  uint32_t num_tokens_ = 0;
  std::atomic<bool> cancel_ = false;  // Read by the session.
  bool is_stopped_ = false;           // A callback stopped the call.
  bool hears_no_more_ = false;        // The callback for text did.
};

}  // namespace cria::c_api
