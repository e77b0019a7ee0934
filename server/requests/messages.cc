#include "server/requests/messages.h"

#include <utility>

#include "core/format.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

std::optional<Json> ParseJson(const std::string& text) {
  try {
    return ReadJsonText(text, "a message");
  } catch (const RequestError&) {
    return std::nullopt;
  }
}

// The value, or throws what is wrong with a message.
template <typename T>
T ValueOrRefuse(std::expected<T, MessageProblem> read) {
  if (!read) {
    MessageProblem& problem = read.error();
    RefuseField(problem.field, problem.problem, std::move(problem.code));
  }
  return std::move(*read);
}

}  // namespace

const MessageRules& RulesForMessages() {
  static constexpr MessageRules kRules = {
      .parse = ParseJson, .max_messages = kMaxMessages, .max_argument_values = kMaxArgumentValues};
  return kRules;
}

std::string ReadContent(const Fields& message, std::string_view name) {
  const Json* const content = message.Find(name);
  if (content == nullptr) return "";
  return ValueOrRefuse(ReadMessageContent(*content, message.PathOf(name)));
}

std::vector<ChatMessage> ReadMessages(const Fields& request) {
  const Json* const list = request.List("messages");
  if (list == nullptr) RefuseField("messages", "is missing");
  ReadConversation read = ValueOrRefuse(ReadMessageList(*list, RulesForMessages()));
  for (ChatMessage& message : read.messages) {
    if (message.role == "developer") message.role = "system";
  }
  return std::move(read.messages);
}

}  // namespace cria::server
