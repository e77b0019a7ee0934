#include "server/requests/conversation_builder.h"

#include <algorithm>

#include "core/format.h"
#include "messages/json_text.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"

namespace cria::server {

void ConversationBuilder::Add(ChatMessage message) {
  if (messages_.size() == kMaxMessages) {
    RefuseField(field_, Format("has more than {} messages and results", kMaxMessages));
  }
  messages_.push_back(std::move(message));
}

void ConversationBuilder::AddAnswer(std::string content, const std::string& reasoning, Json calls) {
  Json fields = Json::object();
  if (!calls.empty()) fields["tool_calls"] = std::move(calls);
  if (!reasoning.empty()) fields["reasoning_content"] = reasoning;
  Add({"assistant", std::move(content), fields.empty() ? "" : Written(fields)});
}

void ConversationBuilder::AddResult(const std::string& call_id, std::string content) {
  Json fields = {{"tool_call_id", call_id}};
  const auto call =
      std::ranges::find(called_, call_id, &std::pair<std::string, std::string>::first);
  if (call != called_.end()) fields["name"] = call->second;
  Add({"tool", std::move(content), Written(fields)});
}

Json ConversationBuilder::CallOf(std::string id, std::string name, Json arguments) {
  if (called_.size() == kMaxMessages) {
    RefuseField(field_, Format("has more than {} calls", kMaxMessages));
  }
  num_argument_values_ += CountValues(arguments);
  if (num_argument_values_ > kMaxArgumentValues) {
    RefuseField(field_,
                Format("has calls whose arguments have more than {} values", kMaxArgumentValues));
  }
  Json call = {{"id", id},
               {"type", "function"},
               {"function", {{"name", name}, {"arguments", std::move(arguments)}}}};
  called_.emplace_back(std::move(id), std::move(name));
  return call;
}

}  // namespace cria::server
