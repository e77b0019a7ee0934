#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/reasoning.h"

namespace cria::server {

// A token of an answer with the natural logarithms of probabilities, before all steps of the
// sampler.
struct TokenLogProbability {
  // Raw bytes of the vocabulary, which may be a part of a character.
  std::string_view text;
  // How many characters the answer's text has before that with the token's first byte. Control
  // tokens are no part of that text.
  size_t first_character = 0;
  double log_probability = 0.0;
  std::vector<std::pair<std::string_view, double>> most_likely;  // The most likely first.
};

// Is told an answer while it comes.
class AnswerListener {
 public:
  virtual ~AnswerListener() = default;

  // The prompt has been read; so many of its tokens were in the KV cache.
  virtual void OnPrompt(size_t /*prompt_tokens*/, size_t /*cached_tokens*/) {}
  virtual void OnText(AnswerPart part, std::string_view text) = 0;
  // A call of a tool, and then its arguments, which are JSON, in pieces. Calls count from 0.
  virtual void OnCall(size_t index, const std::string& id, const std::string& name) = 0;
  virtual void OnArguments(size_t index, std::string_view piece) = 0;
  // For each token of the text, before its text, if log-probabilities are asked for.
  virtual void OnToken(TokenLogProbability token) = 0;
  // Returns false if the client has gone away. It is called before every token.
  virtual bool goes_on() const = 0;
};

enum class FinishReason : uint8_t {
  kStop,       // The model ended its turn, or there was a stop string.
  kLength,     // max_tokens, or the context is full.
  kToolCalls,  // The answer has calls of tools.
  kCancelled,  // The client has gone away, or the server ends.
};

struct AnswerEnd {
  using Duration = std::chrono::steady_clock::duration;

  FinishReason reason = FinishReason::kStop;
  // Another choice had the same prompt before.
  bool repeats_prompt = false;
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // Prompt tokens that were found in the KV cache.
  size_t completion_tokens = 0;
  size_t reasoning_tokens = 0;   // Completion tokens that are reasoning.
  std::string stop_string = {};  // What the answer ended before; "": no stop string.
  Duration prompt_time = {};
  Duration completion_time = {};
  size_t drafted_tokens = 0;
  size_t accepted_tokens = 0;
};

}  // namespace cria::server
