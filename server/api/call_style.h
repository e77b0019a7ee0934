#pragma once

#include <memory>

#include "server/api/call_form.h"
#include "server/api/tool_format.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cria::server {

// How a model's chat template wants tools and calls.
struct CallStyle {
  // Whether the template shows the model what tools there are; otherwise they are described in a
  // system message (DescribeTools).
  bool knows_tools = false;
  // Whether the form of the calls that the template shows, if it shows any, is one that is found.
  bool is_known = true;
  // Null: calls are JSON objects with a name (CallPrefix).
  const CallForm* form = nullptr;
  // The template wants the arguments of earlier calls as JSON in a string.
  bool wants_text_arguments = false;
  // It writes calls only of messages whose content is none, and not an empty text.
  bool wants_no_content = false;
};

// Finds it out by rendering a conversation with a call and reading that call. If the template does
// not write calls, what it says of them decides, or a token of the vocabulary that only opens calls
// of one form. `tokenizer` may be null.
CallStyle FindCallStyle(const ChatTemplate& chat_template, const Tokenizer* tokenizer = nullptr);

std::unique_ptr<ToolFormat> MakeToolFormat(const ChatTemplate& chat_template,
                                           const CallStyle& style);

// Gives messages with calls the form that the template wants.
void AdaptCalls(const CallStyle& style, std::vector<ChatMessage>& messages);

}  // namespace cria::server
