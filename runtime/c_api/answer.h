#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "c_api/handles.h"
#include "llm/conversation.h"

namespace cria::c_api {

// Checks what is chosen from a list; the sampler checks the rest.
Result<cria_generation_options> ReadGenerationOptions(const cria_generation_options* options);
WhenFull WhenFullOf(const cria_generation_options& options);
Result<Sampler> MakeSampler(const LoadedModel& model, const cria_generation_options& options);

// Refuses a result that cannot be filled; null is one that need not be.
Status CheckResult(const cria_result* result);

// One answer under way: its text goes to the caller, who may stop it, and it is timed.
class Answer {
 public:
  // Begins the time. `context_used`, if it is there, follows the size of the context. The pointers
  // must outlive the answer.
  Answer(LoadedModel& model, cria_text_callback on_text, void* data,
         std::atomic<uint32_t>* context_used);

  GenerationOptions Options(uint32_t max_tokens) const;
  TextCallback Receiver() {
    return [this](std::string_view text) { Take(text); };
  }

  // Fills `result`, if it is there.
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
  std::string text_;  // With the zero byte that callers expect; capacity for the longest.
  double first_text_seconds_ = 0.0;
  bool is_stopped_ = false;  // By the callback.
};

}  // namespace cria::c_api
