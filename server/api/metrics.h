#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "server/answers/answer_listener.h"

namespace cria::server {

// Sums since the server was started.
struct Metrics {
  std::atomic<uint64_t> answers = 0;            // Answers that ended by themselves.
  std::atomic<uint64_t> cancelled_answers = 0;  // Whose client went away.
  std::atomic<uint64_t> failed_answers = 0;
  std::atomic<uint64_t> prompt_tokens = 0;  // Tokens of prompts that were computed.
  std::atomic<uint64_t> cached_tokens = 0;  // Tokens of prompts that the KV cache had.
  std::atomic<uint64_t> completion_tokens = 0;
  std::atomic<uint64_t> drafted_tokens = 0;
  std::atomic<uint64_t> accepted_tokens = 0;
  std::atomic<uint64_t> prompt_microseconds = 0;
  std::atomic<uint64_t> completion_microseconds = 0;

  void Add(const AnswerEnd& end) {
    const auto microseconds = [](AnswerEnd::Duration time) {
      return static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::microseconds>(time).count());
    };
    (end.reason == FinishReason::kCancelled ? cancelled_answers : answers) += 1;
    prompt_tokens += end.prompt_tokens - end.cached_tokens;
    cached_tokens += end.cached_tokens;
    completion_tokens += end.completion_tokens;
    drafted_tokens += end.drafted_tokens;
    accepted_tokens += end.accepted_tokens;
    prompt_microseconds += microseconds(end.prompt_time);
    completion_microseconds += microseconds(end.completion_time);
  }
};

}  // namespace cria::server
