#pragma once

#include <memory>
#include <vector>

#include "server/calls/call_form.h"
#include "server/calls/tool_format.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace cria::server {

// How a model's chat template wants tools and calls.
struct CallStyle {
  // Whether the template shows the model what tools there are; otherwise they are described in a
  // system message (DescribeTools).
  bool knows_tools = false;
  // Whether calls in the model's form are found. False also if neither the template nor the
  // vocabulary shows a form.
  bool is_known = true;
  // Null: calls are JSON objects with a name (CallPrefix).
  const CallForm* form = nullptr;
  // The template wants the arguments of earlier calls as JSON in a string.
  bool wants_text_arguments = false;
  // The template writes the calls of a message only if its content is none; an empty text will not
  // do.
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
