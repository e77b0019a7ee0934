#include "serve/api/messages.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

std::string ReadPart(const Fields& part) {
  const std::string type = part.RequiredString("type");
  if (type != "text" && type != "input_text" && type != "output_text") {
    RefuseField(part.PathOf("type"), Format("is \"{}\", but this model reads only texts", type),
                "unsupported_content");
  }
  return part.RequiredString("text");
}

// A call's arguments as an object. Text that is none stays text: the template shows it.
Json ReadArguments(const Fields& function) {
  const Json* const arguments = function.Find("arguments");
  if (arguments == nullptr) return Json::object();
  if (arguments->is_object()) return *arguments;
  if (!arguments->is_string()) {
    RefuseField(function.PathOf("arguments"), "is neither a string with JSON nor an object");
  }
  const auto& text = arguments->get_ref<const std::string&>();
  if (text.empty()) return Json::object();
  try {
    return ReadJsonText(text, function.PathOf("arguments"));
  } catch (const RequestError&) {
    return *arguments;
  }
}

class MessageReader {
 public:
  ChatMessage Read(const Fields& message) {
    ChatMessage read;
    read.role = message.RequiredString("role");
    if (!std::ranges::contains(kRoles, read.role)) {
      RefuseField(
          message.PathOf("role"),
          Format("is \"{}\", but must be system, developer, user, assistant or tool", read.role));
    }
    if (read.role == "developer") read.role = "system";
    if (const Json* const images = message.Find("images"); images != nullptr && !images->empty()) {
      RefuseField(message.PathOf("images"), "is not supported: this model reads only texts",
                  "unsupported_content");
    }
    message.Unsupported("audio");
    message.Unsupported("function_call", {}, "is not supported; use tool_calls");
    const bool has_calls = ReadCalls(message);
    if (!has_calls && read.role != "assistant" && !message.Has("content")) {
      RefuseField(message.PathOf("content"), "is missing");
    }
    read.content = ReadContent(message, "content");
    ReadOthers(message, read.role);
    if (!fields_.empty()) read.fields = Written(fields_);
    return read;
  }

 private:
  bool ReadCalls(const Fields& message) {
    fields_ = Json::object();
    const Json* const calls = message.List("tool_calls");
    if (calls == nullptr || calls->empty()) return false;
    Json read = Json::array();
    for (const Json& call : *calls) {
      const Fields fields(call, Format("{}[{}]", message.PathOf("tool_calls"), read.size()));
      const std::optional<Fields> function = fields.Object("function");
      if (!function) RefuseField(fields.PathOf("function"), "is missing");
      const std::string name = function->RequiredString("name");
      const std::string id = fields.String("id").value_or("");
      Json item = Json::object();
      if (!id.empty()) {
        item["id"] = id;
        called_.emplace_back(id, name);
      }
      item["type"] = "function";
      item["function"] = {{"name", name}, {"arguments", ReadArguments(*function)}};
      read.push_back(std::move(item));
    }
    fields_["tool_calls"] = std::move(read);
    return true;
  }

  void ReadOthers(const Fields& message, std::string_view role) {
    auto reasoning = message.String("reasoning_content");
    if (!reasoning) reasoning = message.String("thinking");
    if (reasoning && !reasoning->empty()) fields_["reasoning_content"] = *reasoning;
    auto name = message.String("name");
    if (!name) name = message.String("tool_name");
    if (role == "tool") {
      const std::string id = message.String("tool_call_id").value_or("");
      if (!id.empty()) fields_["tool_call_id"] = id;
      // Some templates want the name of the function that has answered.
      const auto call = std::ranges::find(called_, id, &std::pair<std::string, std::string>::first);
      if (!name && !id.empty() && call != called_.end()) name = call->second;
    }
    if (name) fields_["name"] = *name;
  }

  Json fields_;
  std::vector<std::pair<std::string, std::string>> called_;  // Ids and names of earlier calls.
};

}  // namespace

std::string ReadContent(const Fields& message, std::string_view name) {
  const Json* const content = message.Find(name);
  if (content == nullptr) return "";
  if (content->is_string()) return content->get<std::string>();
  const std::string path = message.PathOf(name);
  if (!content->is_array()) RefuseField(path, "is neither a string nor a list of texts");
  std::string text;
  size_t index = 0;
  for (const Json& part : *content) text += ReadPart(Fields(part, Format("{}[{}]", path, index++)));
  return text;
}

std::vector<ChatMessage> ReadMessages(const Fields& request) {
  constexpr size_t kMaxMessages = 8192;
  const Json* const list = request.List("messages");
  if (list == nullptr) RefuseField("messages", "is missing");
  if (list->empty()) RefuseField("messages", "is empty: there is nothing to answer");
  if (list->size() > kMaxMessages) {
    RefuseField("messages", Format("has more than {} messages", kMaxMessages));
  }
  std::vector<ChatMessage> messages;
  messages.reserve(list->size());
  MessageReader reader;
  for (const Json& message : *list) {
    messages.push_back(reader.Read(Fields(message, Format("messages[{}]", messages.size()))));
  }
  return messages;
}

}  // namespace cria::serve
