#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "server/requests/json_body.h"
#include "text/chat_template.h"

namespace cria::server {

// Makes the messages of a conversation that a request has in another form than OpenAI's chat:
// answers get the fields that templates know, and results the names of their calls.
class ConversationBuilder {
 public:
  // `field` is the request's list, for the refusal of too many messages.
  explicit ConversationBuilder(std::string field) : field_(std::move(field)) {}

  // All throw RequestError if there are more than kMaxMessages.
  void Add(ChatMessage message);
  // `calls` is a list of what CallOf returns; "" and an empty list are left out.
  void AddAnswer(std::string content, const std::string& reasoning, Json calls);
  // The result of the call with this id.
  void AddResult(const std::string& call_id, std::string content);

  // A call in the form of `tool_calls`, of which a later result gets the name. Throws RequestError
  // if there are more than kMaxMessages, or if their arguments have more than kMaxArgumentValues.
  Json CallOf(std::string id, std::string name, Json arguments);

  std::vector<ChatMessage> Take() { return std::move(messages_); }

 private:
  std::string field_;
  std::vector<ChatMessage> messages_;
  size_t num_argument_values_ = 0;
  std::vector<std::pair<std::string, std::string>> called_;  // Ids and names of earlier calls.
};

}  // namespace cria::server
