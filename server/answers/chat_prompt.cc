#include "server/answers/chat_prompt.h"

#include <utility>

#include "messages/calls_as_text.h"
#include "server/calls/harmony.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

// What is rendered: messages, and the template's variables.
struct Rendered {
  std::vector<ChatMessage> messages;
  std::string variables;
  std::unique_ptr<ToolFormat> format;
  bool continues_last = false;

  RenderOptions options() const {
    return {.add_generation_prompt = !continues_last,
            .variables = variables,
            .max_memory_bytes = kMaxTemplateBytes};
  }
};

constexpr std::string_view kSpace = " \t\r\n";

std::string_view WithoutSpaceAtEnd(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// Removes what the template has written behind the last message, whose content this is.
void CutBehind(const std::string& content, std::vector<ChatSegment>& segments) {
  while (!segments.empty() && segments.back().is_template) segments.pop_back();
  const std::string_view wanted = WithoutSpaceAtEnd(content);
  std::string end;
  for (auto segment = segments.rbegin(); segment != segments.rend() && end.size() < content.size();
       ++segment) {
    end.insert(0, segment->text);
  }
  if (wanted.empty() || !WithoutSpaceAtEnd(end).ends_with(wanted)) {
    RefuseField(
        "messages",
        "cannot be gone on with: the chat template does not write the last message as it is");
  }
}

std::vector<ChatSegment> RenderPrepared(const ChatTemplate& chat_template,
                                        const Rendered& rendered) {
  std::vector<ChatSegment> segments =
      ValueOf(chat_template.Render(rendered.messages, rendered.options()), "messages");
  if (rendered.continues_last) CutBehind(rendered.messages.back().content, segments);
  return segments;
}

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
  Rendered rendered = {.messages = std::move(request.messages),
                       .continues_last = request.continues_last};
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
  const ChatTemplate& chat_template = engine.chat_template();
  Rendered rendered = Prepare(chat_template, style, std::move(request));
  const std::vector<ChatSegment> segments = RenderPrepared(chat_template, rendered);
  const size_t context = engine.decoder().context_tokens();
  ChatPrompt prompt = {
      .tokens =
          ValueOf(ChatTemplate::EncodeRendered(engine.tokenizer(), segments, context), "messages"),
      .format = std::move(rendered.format),
      .tags = FindReasoningTags(chat_template)};
  if (style.form != nullptr && style.form->has_channels) {
    if (rendered.continues_last) {
      RefuseField("messages",
                  "cannot end with the beginning of an answer: this model's have channels");
    }
    prompt.tags = kHarmonyReasoning;
    prompt.has_channels = prompt.may_reason = true;
    return prompt;
  }
  // What the answer begins with is behind the reasoning.
  if (rendered.continues_last) return prompt;
  prompt.begins_in_reasoning = OpensReasoning(chat_template, rendered.messages, rendered.variables);
  const std::string_view source = chat_template.source();
  const bool knows_reasoning =
      source.contains(prompt.tags.open) || source.contains(prompt.tags.close);
  if (!knows_reasoning) return prompt;
  // Some templates end with an empty reasoning if there shall be none.
  const std::string_view end =
      segments.empty() ? std::string_view() : WithoutSpaceAtEnd(segments.back().text);
  prompt.may_reason = !end.ends_with(prompt.tags.close);
  return prompt;
}

std::vector<ChatSegment> RenderChat(const ChatTemplate& chat_template, const CallStyle& style,
                                    ChatRequest request) {
  return RenderPrepared(chat_template, Prepare(chat_template, style, std::move(request)));
}

}  // namespace cria::server
