#include "server/api/chat_prompt.h"

#include <utility>

#include "messages/calls_as_text.h"
#include "server/api/harmony.h"
#include "server/api/request_error.h"

namespace cria::server {
namespace {

// What is rendered: messages, and the template's variables.
struct Rendered {
  std::vector<ChatMessage> messages;
  std::string variables;
  std::unique_ptr<ToolFormat> format;

  RenderOptions options() const { return {.add_generation_prompt = true, .variables = variables}; }
};

// Some templates know no system messages: there, what it says begins the first other message.
void JoinSystemMessage(const ChatTemplate& chat_template, Rendered& rendered) {
  std::vector<ChatMessage>& messages = rendered.messages;
  if (messages.size() < 2 || messages[0].role != "system") return;
  if (chat_template.Render(messages, rendered.options())) return;
  messages[1].content = messages[0].content + "\n\n" + messages[1].content;
  messages.erase(messages.begin());
}

// Adds the variable `tools` to the JSON of an object that does not have it; "" is an empty one.
void AddTools(const std::vector<std::string>& definitions, std::string& variables) {
  if (variables.empty()) {
    variables = "{";
  } else {
    variables.back() = ',';
  }
  variables += R"("tools":[)";
  for (const std::string& definition : definitions) {
    variables += definition;
    variables += ',';
  }
  variables.back() = ']';
  variables += '}';
}

Rendered Prepare(const ChatTemplate& chat_template, const CallStyle& style, ChatRequest request) {
  Rendered rendered = {.messages = std::move(request.messages)};
  const Json variables = std::move(request.template_variables);
  std::vector<std::string> definitions;
  if (!request.tools.definitions.empty() || HasCalls(rendered.messages)) {
    rendered.format = MakeToolFormat(chat_template, style);
    if (!rendered.format->template_knows_tools) {
      DescribeTools(request.tools, rendered.messages);
    } else {
      definitions = std::move(request.tools.definitions);
      AdaptCalls(style, rendered.messages);
    }
  }
  if (!variables.empty()) rendered.variables = Written(variables);
  if (!definitions.empty()) AddTools(definitions, rendered.variables);
  if (rendered.format != nullptr && !rendered.format->template_knows_tools) {
    JoinSystemMessage(chat_template, rendered);
  }
  return rendered;
}

}  // namespace

ChatPrompt MakeChatPrompt(const Engine& engine, const CallStyle& style, ChatRequest request) {
  constexpr std::string_view kSpace = " \t\r\n";
  const ChatTemplate& chat_template = engine.chat_template();
  Rendered rendered = Prepare(chat_template, style, std::move(request));
  const size_t context = engine.decoder().context_tokens();
  ChatPrompt prompt = {.tokens = ValueOf(chat_template.Encode(engine.tokenizer(), rendered.messages,
                                                              rendered.options(), context),
                                         "messages"),
                       .format = std::move(rendered.format),
                       .tags = FindReasoningTags(chat_template)};
  if (style.form != nullptr && style.form->has_channels) {
    prompt.tags = kHarmonyReasoning;
    prompt.has_channels = prompt.may_reason = true;
    return prompt;
  }
  prompt.begins_in_reasoning = OpensReasoning(chat_template, rendered.messages, rendered.variables);
  const std::string_view source = chat_template.source();
  const bool knows_reasoning =
      source.contains(prompt.tags.open) || source.contains(prompt.tags.close);
  if (!knows_reasoning) return prompt;
  // Some templates end with an empty reasoning if there shall be none.
  const auto segments = ValueOf(chat_template.Render(rendered.messages, rendered.options()));
  std::string_view end = segments.empty() ? std::string_view() : segments.back().text;
  end = end.substr(0, end.find_last_not_of(kSpace) + 1);
  prompt.may_reason = !end.ends_with(prompt.tags.close);
  return prompt;
}

std::vector<ChatSegment> RenderChat(const ChatTemplate& chat_template, const CallStyle& style,
                                    ChatRequest request) {
  const Rendered rendered = Prepare(chat_template, style, std::move(request));
  return ValueOf(chat_template.Render(rendered.messages, rendered.options()));
}

}  // namespace cria::server
