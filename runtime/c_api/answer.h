#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "c_api/handles.h"
#include "llm/conversation.h"

namespace cria::c_api {

// Checks the options that have a list of values; the sampler checks the others.
Result<cria_generation_options> ReadGenerationOptions(const cria_generation_options* options);
WhenFull WhenFullOf(const cria_generation_options& options);
Result<Sampler> MakeSampler(const LoadedModel& model, const cria_generation_options& options);

// Fails if the result cannot be filled. Null is allowed.
Status CheckResult(const cria_result* result);

// One answer: passes its text to the caller, who may stop it, and measures its time.
class Answer {
 public:
  // Starts the clock. `context_used` is updated with the size of the context; it may be null. The
  // pointers must outlive the answer.
  Answer(LoadedModel& model, cria_text_callback on_text, void* data,
         std::atomic<uint32_t>* context_used);

  GenerationOptions Options(uint32_t max_tokens) const;
  TextCallback Receiver() {
    return [this](std::string_view text) { Take(text); };
  }

  // Fills `result` unless it is null.
  Status Finish(StopReason reason, cria_result* result);

 private:
  using Clock = std::chrono::steady_clock;

  void Take(std::string_view text);
  double SecondsSinceBegin() const;

  LoadedModel& model_;
  const cria_text_callback on_text_;
  void* const data_;
  std::atomic<uint32_t>* const context_used_;
  const Clock::time_point begin_ = Clock::now();
  std::string text_;  // Ends with the zero byte that callers expect; capacity for the longest text.
  double first_text_seconds_ = 0.0;
  bool is_stopped_ = false;  // The callback stopped the answer.
};

}  // namespace cria::c_api
