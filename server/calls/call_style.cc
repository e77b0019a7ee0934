#include "server/calls/call_style.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/format.h"
#include "server/calls/call_finder.h"
#include "server/requests/json_body.h"

namespace cria::server {
namespace {

constexpr std::string_view kProbeQuestion = "probe question";
constexpr std::string_view kProbeName = "probe_tool";
constexpr std::string_view kProbeArguments = R"({"probe_count":7,"probe_text":"two words"})";
constexpr std::string_view kProbeParameters =
    R"({"type":"object","properties":{"probe_count":{"type":"integer","description":"a count"},)"
    R"("probe_text":{"type":"string","description":"a text"}},)"
    R"("required":["probe_count","probe_text"]})";

ToolUse ProbeTools() {
  return {
      .choice = ToolUse::Choice::kAuto,
      .tools = {{.name = std::string(kProbeName), .parameters = std::string(kProbeParameters)}}};
}

// What the template writes behind a question: an answer that is a call. Nothing if it fails, or
// does not write the call.
std::optional<std::string> RenderedCall(const ChatTemplate& chat_template, bool has_text,
                                        bool has_no_content) {
  const std::string arguments =
      has_text ? Written(Json(kProbeArguments)) : std::string(kProbeArguments);
  const std::vector<ChatMessage> messages = {
      {"user", std::string(kProbeQuestion)},
      {"assistant", "",
       Format(R"({{"tool_calls":[{{"id":"abcdefgh1","type":"function",)"
              R"("function":{{"name":"{}","arguments":{}}}}}]}})",
              kProbeName, arguments),
       has_no_content}};
  const std::string variables =
      Format(R"({{"tools":[{{"type":"function","function":{{"name":"{}","description":"a tool",)"
             R"("parameters":{}}}}}]}})",
             kProbeName, kProbeParameters);
  const auto segments = chat_template.Render(messages, {.variables = variables});
  if (!segments) return std::nullopt;
  std::string text;
  for (const ChatSegment& segment : *segments) text += segment.text;
  const size_t question = text.rfind(kProbeQuestion);
  if (question == text.npos) return std::nullopt;
  text.erase(0, question + kProbeQuestion.size());
  return text.contains(kProbeName) ? std::optional(std::move(text)) : std::nullopt;
}

// Whether the call, and no other, is found in the text in this form.
bool IsFound(const std::string& text, const CallForm* form) {
  const ToolUse use = ProbeTools();
  size_t num_calls = 0;
  bool is_same = true;
  const CallFinder* self = nullptr;
  const auto on_call = [&](const ToolCall& call) {
    const auto arguments = TryReadJson(call.arguments);
    ++num_calls;
    is_same = is_same && self->found().form == form && arguments &&
              Written(*arguments) == kProbeArguments;
    return true;
  };
  CallFinder finder(use, {.takes_bare = form == nullptr, .stops_at_arguments = false, .form = form},
                    {.on_text = [](std::string_view) {}, .on_call = on_call});
  self = &finder;
  finder.Append(text);
  finder.Flush();
  return num_calls == 1 && is_same;
}

// Whether the text has what the form writes before the value of the first parameter.
bool HasLayout(const std::string& text, const CallForm& form) {
  std::string layout = Format("{}{}{}", form.call_open, kProbeName, form.name_end);
  if (form.style == ArgumentStyle::kTagged) {
    layout += Format("{}probe_count{}", form.param_open, form.param_name_end);
  }
  return text.contains(layout);
}

const CallForm* FindForm(const std::string& text) {
  const CallForm* found = nullptr;
  for (const CallForm& form : CallForms()) {
    if (!IsFound(text, &form)) continue;
    if (HasLayout(text, form)) return &form;
    if (found == nullptr) found = &form;
  }
  return found;
}

// The first mark of a form, such as <|tool_call_start|>.
std::string_view FirstMark(const CallForm& form) {
  const std::string_view opening = form.first_opening();
  return opening.substr(0, opening.find('>') + 1);
}

// The only form whose first mark is a token, and stands for nothing else.
const CallForm* FindFormOfToken(const Tokenizer& tokenizer) {
  const CallForm* found = nullptr;
  for (const CallForm& form : CallForms()) {
    const std::string_view mark = FirstMark(form);
    const bool is_shared = std::ranges::count(CallForms(), mark, FirstMark) > 1;
    if (mark.empty() || is_shared) continue;
    const auto ids = tokenizer.Encode(mark, {.add_bos = false, .parse_special = true});
    if (!ids || ids->size() != 1) continue;
    if (found != nullptr) return nullptr;
    found = &form;
  }
  return found;
}

}  // namespace

CallStyle FindCallStyle(const ChatTemplate& chat_template, const Tokenizer* tokenizer) {
  CallStyle style = {.knows_tools = KnowsTools(chat_template)};
  // Without tools, the model is told the form of Hermes.
  if (!style.knows_tools && !chat_template.source().contains("tool_calls")) return style;
  bool writes_calls = false;
  for (const bool has_no_content : {false, true}) {
    for (const bool has_text : {false, true}) {
      const auto text = RenderedCall(chat_template, has_text, has_no_content);
      if (!text) continue;
      writes_calls = true;
      if (!IsFound(*text, nullptr)) {
        style.form = FindForm(*text);
        if (style.form == nullptr) continue;
      }
      style.wants_text_arguments = has_text;
      style.wants_no_content = has_no_content;
      return style;
    }
  }
  style.is_known = !writes_calls && KnowsCallForm(chat_template);
  if (!style.is_known && !writes_calls && tokenizer != nullptr) {
    style.form = FindFormOfToken(*tokenizer);
    style.is_known = style.form != nullptr;
  }
  return style;
}

std::unique_ptr<ToolFormat> MakeToolFormat(const ChatTemplate& chat_template,
                                           const CallStyle& style) {
  if (style.knows_tools && style.form != nullptr) return MakeFormFormat(*style.form);
  return FindToolFormat(chat_template.source(), style.knows_tools);
}

void AdaptCalls(const CallStyle& style, std::vector<ChatMessage>& messages) {
  for (ChatMessage& message : messages) {
    if (!message.fields.contains("\"tool_calls\"")) continue;
    message.has_no_content = style.wants_no_content && message.content.empty();
    if (!style.wants_text_arguments) continue;
    std::optional<Json> fields = TryReadJson(message.fields);
    if (!fields || !fields->contains("tool_calls")) continue;
    for (Json& call : (*fields)["tool_calls"]) {
      Json& arguments = call["function"]["arguments"];
      if (arguments.is_object()) arguments = Written(arguments);
    }
    message.fields = Written(*fields);
  }
}

}  // namespace cria::server
