#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "jinja/json_reader.h"
#include "jinja/render.h"
#include "jinja/text.h"

namespace cria {
namespace {

using jinja::Context;
using jinja::Entry;
using jinja::Growing;
using jinja::Trusted;
using jinja::Untrusted;
using jinja::Value;

constexpr std::string_view kContentsAlone =
    "{% for message in messages %}{{ message.content }}{% endfor %}";

// Roles that programs set, not users: some templates write them as special tokens.
constexpr std::array<std::string_view, 4> kKnownRoles = {"system", "user", "assistant", "tool"};

// Variables that every conversation sets itself.
constexpr std::array<std::string_view, 4> kOwnVariables = {"messages", "add_generation_prompt",
                                                           "bos_token", "eos_token"};

// The limits for a template; they grow with the messages and variables.
jinja::Limits LimitsFor(std::span<const ChatMessage> messages, std::string_view variables) {
  size_t message_bytes = variables.size();
  for (const ChatMessage& message : messages) {
    message_bytes += sizeof(ChatMessage) + message.role.size() + message.content.size();
  }
  jinja::Limits limits;
  limits.steps += message_bytes;
  limits.memory_bytes += 16 * message_bytes;
  limits.output_bytes += 4 * message_bytes;
  return limits;
}

Value MakeMessages(Context& context, std::span<const ChatMessage> messages) {
  Growing<Value> list(context);
  for (const ChatMessage& message : messages) {
    const bool is_known = std::ranges::contains(kKnownRoles, message.role);
    Growing<Entry> fields(context);
    fields.Add({Trusted(context, "role"),
                is_known ? Trusted(context, message.role) : Untrusted(context, message.role)});
    fields.Add({Trusted(context, "content"), Untrusted(context, message.content)});
    list.Add(jinja::MakeDict(context, fields.items()));
  }
  return jinja::MakeList(context, list.items());
}

// Adds the variables of a JSON object.
Status AddVariables(Context& context, std::string_view json, Growing<jinja::Variable>& globals) {
  if (json.empty()) return {};
  const auto object = jinja::ReadJson(context, json);
  if (!object) {
    return Fail(object.error().code(),
                "the template's variables are not JSON: " + object.error().message());
  }
  if (!object->is(jinja::Kind::kDict)) {
    return Fail(ErrorCode::kUsage, "the template's variables are not a JSON object");
  }
  for (const Entry& entry : object->dict->entries) {
    const std::string_view name = jinja::Flat(context, *entry.key.text);
    if (std::ranges::contains(kOwnVariables, name)) {
      return Fail(ErrorCode::kUsage, "the template's variable " + std::string(name) +
                                         " cannot be set: it has the value of this conversation");
    }
    globals.Add({name, entry.value});
  }
  return {};
}

}  // namespace

Status CheckTemplateVariables(std::string_view variables) {
  Context context(LimitsFor({}, variables), nullptr);
  Growing<jinja::Variable> globals(context);
  return AddVariables(context, variables, globals);
}

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

ChatTemplate MakeChatTemplate(std::string_view source, const Vocabulary& vocabulary) {
  const auto token = [&](int32_t id) {
    return id < 0 ? std::string_view() : vocabulary.piece(static_cast<size_t>(id));
  };
  return {.source = source,
          .bos_token = token(vocabulary.bos_token_id),
          .eos_token = token(vocabulary.eos_token_id)};
}

Result<std::vector<ChatSegment>> RenderChat(const ChatTemplate& chat_template,
                                            std::span<const ChatMessage> messages,
                                            bool add_generation_prompt) {
  Context context(LimitsFor(messages, chat_template.variables), chat_template.clock);
  if (chat_template.time) context.SetTime(*chat_template.time);
  Growing<jinja::Variable> globals(context);
  globals.Add({"messages", MakeMessages(context, messages)});
  globals.Add({"add_generation_prompt", jinja::Bool(add_generation_prompt)});
  globals.Add({"tools", jinja::None()});
  globals.Add({"documents", jinja::None()});
  CRIA_RETURN_IF_ERROR(AddVariables(context, chat_template.variables, globals));
  if (!chat_template.bos_token.empty()) {
    globals.Add({"bos_token", Trusted(context, chat_template.bos_token)});
  }
  if (!chat_template.eos_token.empty()) {
    globals.Add({"eos_token", Trusted(context, chat_template.eos_token)});
  }
  const std::string_view source =
      chat_template.source.empty() ? kContentsAlone : chat_template.source;
  auto rendered = jinja::Render(context, source, globals.items());
  if (!rendered) {
    const Error& error = rendered.error();
    return Fail(error.code(), chat_template.where.empty()
                                  ? error.message()
                                  : std::string(chat_template.where) + ": " + error.message());
  }
  std::vector<ChatSegment> segments;
  segments.reserve(rendered->size());
  for (jinja::Segment& segment : *rendered) {
    segments.push_back({std::move(segment.text), segment.is_trusted});
  }
  return segments;
}

Result<std::vector<int32_t>> EncodeChat(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template,
                                        std::span<const ChatMessage> messages,
                                        bool add_generation_prompt, size_t max_tokens) {
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatSegment> rendered,
                        RenderChat(chat_template, messages, add_generation_prompt));
  std::vector<TextSegment> segments;
  segments.reserve(rendered.size());
  for (const ChatSegment& segment : rendered) {
    segments.push_back({segment.text, segment.is_template});
  }
  return tokenizer.EncodeSegments(segments, std::nullopt, max_tokens);
}

}  // namespace cria
