#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "jinja/json_reader.h"
#include "jinja/text.h"
#include "text/thinking_variables.h"

namespace cria {
namespace {

using jinja::Context;
using jinja::Entry;
using jinja::Growing;
using jinja::Kind;
using jinja::Trusted;
using jinja::Untrusted;
using jinja::Value;

constexpr std::string_view kContentsAlone =
    "{% for message in messages %}{{ message.content }}{% endfor %}";

// Roles that programs set, not users: some templates write them as special tokens.
constexpr std::array<std::string_view, 4> kKnownRoles = {"system", "user", "assistant", "tool"};

// What newer programs call the system's role. It is given only to templates that know it.
constexpr std::string_view kDeveloper = "developer";

// Variables that every conversation sets itself.
constexpr std::array<std::string_view, 4> kOwnVariables = {"messages", "add_generation_prompt",
                                                           "bos_token", "eos_token"};

// The limits for a template; they grow with the messages and variables.
jinja::Limits LimitsFor(std::span<const ChatMessage> messages, std::string_view variables) {
  size_t message_bytes = variables.size();
  for (const ChatMessage& message : messages) {
    message_bytes +=
        sizeof(ChatMessage) + message.role.size() + message.content.size() + message.fields.size();
  }
  jinja::Limits limits;
  limits.steps += message_bytes;
  limits.memory_bytes += 16 * message_bytes;
  limits.output_bytes += 4 * message_bytes;
  return limits;
}

// Adds the fields of a message besides its role and content.
Status AddFields(Context& context, std::string_view json, Growing<Entry>& fields) {
  if (json.empty()) return {};
  const auto object = jinja::ReadJson(context, json);
  if (!object) {
    return Fail(object.error().code(),
                "the fields of a message are not JSON: " + object.error().message());
  }
  if (!object->is(jinja::Kind::kDict)) {
    return Fail(ErrorCode::kUsage, "the fields of a message are not a JSON object");
  }
  for (const Entry& entry : object->dict->entries) {
    const std::string_view name = jinja::Flat(context, *entry.key.text);
    if (name == "role" || name == "content") {
      return Fail(ErrorCode::kUsage, "the fields of a message repeat its " + std::string(name));
    }
    fields.Add({Trusted(context, name), entry.value});
  }
  return {};
}

// The content as a list of one part.
Value MakeParts(Context& context, const Value& content) {
  Growing<Entry> part(context);
  part.Add({Trusted(context, "type"), Trusted(context, "text")});
  part.Add({Trusted(context, "text"), content});
  Growing<Value> parts(context);
  parts.Add(jinja::MakeDict(context, part.items()));
  return jinja::MakeList(context, parts.items());
}

Result<Value> MakeMessages(Context& context, std::span<const ChatMessage> messages,
                           bool wants_parts, bool knows_developer) {
  Growing<Value> list(context);
  for (const ChatMessage& message : messages) {
    const bool is_developer = message.role == kDeveloper;
    const std::string_view role =
        is_developer && !knows_developer ? std::string_view("system") : message.role;
    const bool is_known = is_developer || std::ranges::contains(kKnownRoles, role);
    Growing<Entry> fields(context);
    fields.Add(
        {Trusted(context, "role"), is_known ? Trusted(context, role) : Untrusted(context, role)});
    Value content = jinja::None();
    if (!message.has_no_content) {
      content = Untrusted(context, message.content);
      if (wants_parts) content = MakeParts(context, content);
    }
    fields.Add({Trusted(context, "content"), content});
    CRIA_RETURN_IF_ERROR(AddFields(context, message.fields, fields));
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
    const Kind kind = entry.value.kind;
    if (std::ranges::contains(kThinkingVariables, name) && kind != Kind::kBool &&
        kind != Kind::kNone) {
      return Fail(ErrorCode::kUsage,
                  "the template's variable " + std::string(name) + " is neither true nor false");
    }
    globals.Add({name, entry.value});
  }
  return {};
}

// Nodes and texts of parsed templates take up to this many bytes for each byte of the source.
constexpr size_t kParsedBytesPerByte = 96;

jinja::Limits ParsingLimits(std::string_view source) {
  jinja::Limits limits;
  limits.memory_bytes = kParsedBytesPerByte * (source.size() + 64);
  return limits;
}

std::string_view TextOfToken(const Vocabulary& vocabulary, int32_t id) {
  return id < 0 ? std::string_view() : vocabulary.piece(static_cast<size_t>(id));
}

// Whether the template itself has written the BOS token. What follows the first answer does not
// count: some templates leave the first BOS token to the tokenizer, and write those between turns.
bool WritesBos(std::span<const ChatSegment> segments, const Vocabulary& vocabulary) {
  const std::string_view bos = TextOfToken(vocabulary, vocabulary.bos_token_id);
  const std::string_view eos = TextOfToken(vocabulary, vocabulary.eos_token_id);
  if (bos.empty() || segments.empty()) return false;
  if (bos == eos) {
    // The same token ends answers, so it must be the first text.
    const std::string& begin = segments[0].text;
    const size_t found = begin.find_first_not_of(" \t\n");
    return segments[0].is_template && found != begin.npos && begin.substr(found).starts_with(bos);
  }
  for (const ChatSegment& segment : segments) {
    if (!segment.is_template) continue;
    const size_t found = segment.text.find(bos);
    const size_t end = eos.empty() ? std::string::npos : segment.text.find(eos);
    if (found != std::string::npos) return found <= end;
    if (end != std::string::npos) return false;
  }
  return false;
}

}  // namespace

Status CheckTemplateVariables(std::string_view variables) {
  Context context(LimitsFor({}, variables), nullptr);
  Growing<jinja::Variable> globals(context);
  return AddVariables(context, variables, globals);
}

Status CheckMessageFields(std::string_view fields) {
  Context context(LimitsFor({}, fields), nullptr);
  Growing<Entry> entries(context);
  return AddFields(context, fields, entries);
}

std::tm LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

ChatTemplate::ChatTemplate(std::string_view source, const ChatTemplateOptions& options)
    : source_(source.empty() ? kContentsAlone : source),
      options_(options),
      parsed_(source_, ParsingLimits(source_)) {
  // Templates that read parts look at their types.
  if (!source_.contains("type") || WritesContent()) return;
  wants_parts_ = true;
  wants_parts_ = WritesContent();
}

ChatTemplate::ChatTemplate(std::string_view source, const Vocabulary& vocabulary,
                           std::string_view where)
    : ChatTemplate(source, {.bos_token = TextOfToken(vocabulary, vocabulary.bos_token_id),
                            .eos_token = TextOfToken(vocabulary, vocabulary.eos_token_id),
                            .where = where}) {}

bool ChatTemplate::Reads(std::string_view variable) const { return parsed_.Reads(variable); }

// Whether the template writes what a user says.
bool ChatTemplate::WritesContent() const {
  const ChatMessage message = {"user", "something"};
  const auto rendered = Render({&message, 1});
  return rendered && std::ranges::any_of(*rendered, [&](const ChatSegment& segment) {
           return !segment.is_template && segment.text.contains(message.content);
         });
}

Result<std::vector<ChatSegment>> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                                      const RenderOptions& options) const {
  jinja::Limits limits = LimitsFor(messages, options.variables);
  limits.memory_bytes = std::min(limits.memory_bytes, options.max_memory_bytes);
  Context context(limits, options_.clock);
  if (options.time) context.SetTime(*options.time);
  Growing<jinja::Variable> globals(context);
  CRIA_ASSIGN_OR_RETURN(const Value list, MakeMessages(context, messages, wants_parts_,
                                                       source_.contains(kDeveloper)));
  globals.Add({"messages", list});
  globals.Add({"add_generation_prompt", jinja::Bool(options.add_generation_prompt)});
  globals.Add({"tools", jinja::None()});
  globals.Add({"documents", jinja::None()});
  CRIA_RETURN_IF_ERROR(AddVariables(context, options.variables, globals));
  if (!options_.bos_token.empty()) {
    globals.Add({"bos_token", Trusted(context, options_.bos_token)});
  }
  if (!options_.eos_token.empty()) {
    globals.Add({"eos_token", Trusted(context, options_.eos_token)});
  }
  auto rendered = parsed_.Render(context, globals.items());
  if (!rendered) {
    const Error& error = rendered.error();
    return Fail(error.code(), options_.where.empty()
                                  ? error.message()
                                  : std::string(options_.where) + ": " + error.message());
  }
  std::vector<ChatSegment> segments;
  segments.reserve(rendered->size());
  for (jinja::Segment& segment : *rendered) {
    segments.push_back({std::move(segment.text), segment.is_trusted});
  }
  return segments;
}

Result<std::vector<int32_t>> ChatTemplate::Encode(const Tokenizer& tokenizer,
                                                  std::span<const ChatMessage> messages,
                                                  const RenderOptions& options,
                                                  size_t max_tokens) const {
  CRIA_ASSIGN_OR_RETURN(const std::vector<ChatSegment> rendered, Render(messages, options));
  return EncodeRendered(tokenizer, rendered, max_tokens);
}

Result<std::vector<int32_t>> ChatTemplate::EncodeRendered(const Tokenizer& tokenizer,
                                                          std::span<const ChatSegment> rendered,
                                                          size_t max_tokens) {
  std::vector<TextSegment> segments;
  segments.reserve(rendered.size());
  for (const ChatSegment& segment : rendered) {
    segments.push_back({segment.text, segment.is_template});
  }
  CRIA_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                        tokenizer.EncodeSegments(segments, /*add_bos=*/false, max_tokens));
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  if (vocabulary.add_bos_token && !WritesBos(rendered, vocabulary)) {
    ids.insert(ids.begin(), vocabulary.bos_token_id);
  }
  return ids;
}

}  // namespace cria
