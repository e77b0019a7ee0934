#pragma once

#include <cstddef>
#include <vector>

#include "server/answers/answer_listener.h"
#include "server/api/api_state.h"
#include "server/api/response.h"
#include "server/requests/answer_request.h"
#include "server/requests/prompts.h"

namespace cria::server {

// More tokens with log-probabilities than this are sent without waiting for their text.
inline constexpr size_t kMaxHeldTokens = 8;

// Writes the answers to one request, choice by choice.
class AnswerWriter : public AnswerListener {
 public:
  AnswerWriter(Exchange& exchange, Response& response) : exchange_(exchange), response_(response) {}

  virtual void BeginChoice(size_t index) = 0;
  virtual void EndChoice(const AnswerEnd& end) = 0;
  // After the last choice.
  virtual void Finish() = 0;

  bool goes_on() const override { return !response_.is_gone() && !exchange_.state.work.ends(); }

 protected:
  ServedModel& model() const { return exchange_.model(); }
  Response& response() const { return response_; }

 private:
  Exchange& exchange_;
  Response& response_;
};

// Both generate all choices of all prompts, one after the other, on the calling thread. They throw
// RequestError.
void AnswerChat(Exchange& exchange, ChatRequest request, Response& response, AnswerWriter& writer);
void AnswerTexts(Exchange& exchange, const std::vector<TextPrompt>& prompts,
                 const AnswerOptions& options, Response& response, AnswerWriter& writer);

// Adds up what several choices took. The prompt of several choices counts once, with what it took
// before the first of them.
void AddUsage(AnswerEnd& sum, const AnswerEnd& end);
// llama-server's `timings`.
Json TimingsOf(const AnswerEnd& end);
// An object with OpenAI's `usage`, and `timings`.
Json UsageAndTimings(const AnswerEnd& end);
// "stop", "length" or "tool_calls".
const char* FinishReasonName(FinishReason reason);

}  // namespace cria::server
