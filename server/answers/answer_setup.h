#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "llm/constraint.h"
#include "llm/session.h"
#include "server/calls/tool_format.h"
#include "server/requests/answer_request.h"
#include "text/reasoning.h"
#include "text/tokenizer.h"

namespace cria::server {

// What an answer begins with.
struct AnswerSetup {
  const Tokenizer& tokenizer;
  std::span<const int32_t> stop_token_ids;
  Session& session;
  Constraint* constraint = nullptr;  // Null: the engine has none.
  const std::atomic<bool>* cancel = nullptr;
  std::span<const int32_t> prompt;
  bool at_text_start = false;  // The text of the prompt is empty.
  const AnswerOptions& options;
  uint64_t seed = 0;

  // The tools of a conversation; null: text is continued.
  const ToolUse* tools = nullptr;
  const ToolFormat* format = nullptr;
  ReasoningTags tags = {};
  bool begins_in_reasoning = false;
  bool has_channels = false;  // The model writes messages of Harmony (harmony.h).
  bool may_reason = false;    // The answer may begin with reasoning.
};

}  // namespace cria::server
