#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "llm/engine.h"
#include "server/calls/call_style.h"
#include "server/calls/tool_format.h"
#include "server/requests/answer_request.h"
#include "text/reasoning.h"

namespace cria::server {

// A conversation as the model reads it.
struct ChatPrompt {
  std::vector<int32_t> tokens;
  std::unique_ptr<ToolFormat> format;  // Null: no tools are in use.
  ReasoningTags tags;
  bool begins_in_reasoning = false;
  bool may_reason = false;
  bool has_channels = false;
};

// Renders the conversation. Fails if it does not fit the context.
ChatPrompt MakeChatPrompt(const Engine& engine, const CallStyle& style, ChatRequest request);
// The text of the same.
std::vector<ChatSegment> RenderChat(const ChatTemplate& chat_template, const CallStyle& style,
                                    ChatRequest request);

}  // namespace cria::server
