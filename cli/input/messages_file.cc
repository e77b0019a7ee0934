#include "cli/input/messages_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "cli/input/json_document.h"
#include "cli/input/text_file.h"
#include "cli/terminal/printable.h"
#include "core/format.h"
#include "messages/calls_as_text.h"
#include "messages/message_reader.h"

namespace cria::cli {
namespace {

using jinja::Kind;
using jinja::Value;
using Json = nlohmann::ordered_json;

std::optional<Json> ParseJson(const std::string& text) {
  JsonDocument document(text);
  const auto value = document.Read("", "JSON");
  if (!value) return std::nullopt;
  return JsonOfValue(document, *value);
}

constexpr MessageRules kRules = {.parse = ParseJson, .allows_other_roles = true};

// A template knows more roles than OpenAI's if it writes what they say.
Status CheckRoles(const std::string& where, const ChatTemplate& chat_template,
                  const std::vector<ChatMessage>& messages) {
  std::set<std::string_view> known;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (IsUsualRole(role) || !known.insert(role).second) continue;
    const std::array<ChatMessage, 2> probe = {{{"user", "Hi"}, {role, "something"}}};
    const auto rendered = chat_template.Render(probe);
    const auto says_it = [&](const ChatSegment& segment) {
      return segment.text.contains(probe[1].content);
    };
    // A template that refuses the role says so itself.
    if (!rendered || std::ranges::any_of(*rendered, says_it)) continue;
    return Fail(ErrorCode::kInvalidFile,
                Format("{}: messages[{}].role is \"{}\", which the chat template does not write",
                       where, i, role));
  }
  return {};
}

// Says which fields the template does not get.
void PrintUnknownFields(const std::string& where, const std::vector<std::string>& fields) {
  if (fields.empty()) return;
  const std::string others =
      fields.size() > 1 ? Format(" and {} other fields", fields.size() - 1) : "";
  std::fprintf(
      stderr, "cria: %s\n",
      Printable(Format("{}: {}{} {} not known: the model does not read {}", where, fields[0],
                       others, others.empty() ? "is" : "are", others.empty() ? "it" : "them"))
          .c_str());
}

}  // namespace

Result<std::vector<ChatMessage>> ReadMessagesFile(const std::string& path,
                                                  const ChatTemplate& chat_template) {
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, {kMaxMessagesFileBytes}));
  const std::string where = path == "-" ? "standard input" : path;
  JsonDocument document(text);
  CRIA_ASSIGN_OR_RETURN(const Value value, document.Read(where, "a list of messages"));
  const Value* list = &value;
  std::vector<std::string> unknown_fields;
  if (value.is(Kind::kDict)) {
    list = jinja::Find(value.dict->entries, "messages");
    for (const auto& [name, item] : value.dict->entries) {
      if (document.String(name) != "messages") unknown_fields.push_back(document.String(name));
    }
  }
  if (list == nullptr || !list->is(Kind::kList)) {
    return Fail(ErrorCode::kInvalidFile,
                where + R"(: has neither a list of messages nor an object with such a list as )"
                        R"("messages")");
  }
  auto messages = ReadMessages(document, *list, where, chat_template, unknown_fields);
  PrintUnknownFields(where, unknown_fields);
  return messages;
}

Result<std::vector<ChatMessage>> ReadMessages(JsonDocument& document, const jinja::Value& list,
                                              const std::string& where,
                                              const ChatTemplate& chat_template,
                                              std::vector<std::string>& unknown_fields) {
  auto read = ReadMessageList(JsonOfValue(document, list), kRules);
  if (!read) {
    const MessageProblem& problem = read.error();
    return Fail(problem.code.empty() ? ErrorCode::kInvalidFile : ErrorCode::kUnsupported,
                Format("{}: {} {}", where, problem.field, problem.problem));
  }
  unknown_fields.insert(unknown_fields.end(), read->unknown_fields.begin(),
                        read->unknown_fields.end());
  CRIA_RETURN_IF_ERROR(CheckRoles(where, chat_template, read->messages));
  if (HasCalls(read->messages) && !chat_template.Reads("tools")) {
    WriteCallsAsText(read->messages, kRules);
  }
  return std::move(read->messages);
}

}  // namespace cria::cli
