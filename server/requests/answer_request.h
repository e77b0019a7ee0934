#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "llm/sampler.h"
#include "server/requests/json_body.h"
#include "server/requests/tools.h"
#include "text/chat_template.h"

namespace cria::server {

// What the text of an answer must match.
struct AnswerShape {
  enum class Kind : uint8_t { kAny, kJsonObject, kJsonSchema, kGrammar, kRegex };

  Kind kind = Kind::kAny;
  std::string text;  // The schema, the grammar or the expression.
  // The request's field, for errors: "response_format".
  std::string field;
};

// How an answer is chosen, whichever API asks for it.
struct AnswerOptions {
  static constexpr size_t kMaxStopStrings = 16;
  static constexpr size_t kMaxStopBytes = 4096;  // All stop strings together.
  static constexpr size_t kMaxTopLogProbabilities = 20;
  static constexpr size_t kMaxChoices = 16;

  SamplerOptions sampler;
  size_t max_tokens = 0;  // 0: until the model stops or the context is full.
  std::vector<std::string> stop;
  AnswerShape shape;
  bool log_probabilities = false;
  size_t top_log_probabilities = 0;
  size_t num_choices = 1;
  bool ignore_eos = false;
  // How many tokens of reasoning there may be before it is ended; unset: no limit.
  std::optional<size_t> reasoning_budget;
};

// A conversation that is to be answered.
struct ChatRequest {
  std::vector<ChatMessage> messages;
  ToolUse tools;
  Json template_variables = Json::object();
  AnswerOptions options;
  // The last message is the beginning of the answer, which goes on behind it.
  bool continues_last = false;
};

}  // namespace cria::server
