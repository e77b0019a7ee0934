#include "cli/messages_file.h"

#include <string_view>
#include <utility>

#include "cli/json_document.h"
#include "cli/text_file.h"
#include "core/format.h"

namespace cria::cli {
namespace {

using jinja::Kind;
using jinja::Value;

// Reads the messages from the values of a JSON text.
class MessagesReader {
 public:
  MessagesReader(JsonDocument& document, const std::string& where)
      : document_(document), where_(where) {}

  Result<std::vector<ChatMessage>> Read(const Value& document) const {
    const Value* list = &document;
    if (document.is(Kind::kDict)) list = jinja::Find(document.dict->entries, "messages");
    if (list == nullptr || !list->is(Kind::kList)) {
      return Bad(R"(has neither a list of messages nor an object with such a list as "messages")");
    }
    if (list->list->items.empty()) return Bad("has no messages");
    std::vector<ChatMessage> messages;
    messages.reserve(list->list->items.size());
    for (const Value& item : list->list->items) {
      const std::string name = Format("messages[{}]", messages.size());
      CRIA_ASSIGN_OR_RETURN(ChatMessage message, ReadMessage(item, name));
      messages.push_back(std::move(message));
    }
    return messages;
  }

 private:
  std::unexpected<Error> Bad(const std::string& problem) const {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {}", where_, problem));
  }

  Result<std::string> ReadString(const Value* value, const std::string& name) const {
    if (value == nullptr) return Bad(name + " is missing");
    if (!value->is(Kind::kString)) return Bad(name + " is not a string");
    return document_.String(*value);
  }

  Result<ChatMessage> ReadMessage(const Value& value, const std::string& name) const {
    if (!value.is(Kind::kDict)) return Bad(name + " is not an object with a role and a content");
    const auto fields = value.dict->entries;
    ChatMessage message;
    CRIA_ASSIGN_OR_RETURN(message.role, ReadString(jinja::Find(fields, "role"), name + ".role"));
    if (message.role.empty()) return Bad(name + ".role is empty");
    CRIA_ASSIGN_OR_RETURN(message.content,
                          ReadContent(jinja::Find(fields, "content"), name + ".content"));
    return message;
  }

  Result<std::string> ReadContent(const Value* value, const std::string& name) const {
    if (value == nullptr) return Bad(name + " is missing");
    if (value->is(Kind::kNone)) return std::string();
    if (!value->is(Kind::kList)) {
      if (value->is(Kind::kString)) return ReadString(value, name);
      return Bad(name + " is neither a string nor a list of texts");
    }
    std::string content;
    size_t index = 0;
    for (const Value& part : value->list->items) {
      CRIA_ASSIGN_OR_RETURN(const std::string text,
                            ReadPart(part, Format("{}[{}]", name, index++)));
      content += text;
    }
    return content;
  }

  Result<std::string> ReadPart(const Value& part, const std::string& name) const {
    if (!part.is(Kind::kDict)) return Bad(name + " is not an object with a type and a text");
    const auto fields = part.dict->entries;
    CRIA_ASSIGN_OR_RETURN(const std::string type,
                          ReadString(jinja::Find(fields, "type"), name + ".type"));
    if (type != "text") {
      return Fail(
          ErrorCode::kUnsupported,
          Format(R"({}: {}.type is not "text": messages can only have texts)", where_, name));
    }
    return ReadString(jinja::Find(fields, "text"), name + ".text");
  }

  JsonDocument& document_;
  const std::string& where_;
};

}  // namespace

Result<std::vector<ChatMessage>> ReadMessagesFile(const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, {kMaxMessagesFileBytes}));
  const std::string where = path == "-" ? "standard input" : path;
  JsonDocument document(text);
  CRIA_ASSIGN_OR_RETURN(const Value value, document.Read(where, "a list of messages"));
  return MessagesReader(document, where).Read(value);
}

}  // namespace cria::cli
