#include "messages/message_reader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/format.h"
#include "messages/json_text.h"

namespace cria {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};

constexpr std::array<std::string_view, 11> kKnownFields = {
    "role",     "content", "tool_calls", "tool_call_id", "name", "tool_name", "reasoning_content",
    "thinking", "images",  "audio",      "function_call"};

// This source throws MessageProblem, which its functions for others return.
[[noreturn]] void Refuse(std::string field, std::string problem, std::string code = "") {
  throw MessageProblem{std::move(field), std::move(problem), std::move(code)};
}

// An object with the path of its fields. A field that is null is missing.
class Object {
 public:
  Object(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) Refuse(path_, "is not an object");
  }

  std::string PathOf(std::string_view name) const { return path_ + "." + std::string(name); }
  const Json* Find(std::string_view name) const {
    const auto found = json_.find(name);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  std::optional<std::string> String(std::string_view name) const {
    const Json* const value = Find(name);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) Refuse(PathOf(name), "is not a string");
    return value->get<std::string>();
  }
  std::string RequiredString(std::string_view name) const {
    std::optional<std::string> text = String(name);
    if (!text) Refuse(PathOf(name), "is missing");
    return std::move(*text);
  }
  const Json& json() const { return json_; }

 private:
  const Json& json_;
  std::string path_;
};

std::string ReadPart(const Object& part) {
  const std::string type = part.RequiredString("type");
  if (type != "text" && type != "input_text" && type != "output_text") {
    Refuse(part.PathOf("type"), Format("is \"{}\", but this model reads only texts", type),
           "unsupported_content");
  }
  return part.RequiredString("text");
}

std::string ReadContentAt(const Json& content, const std::string& path) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) Refuse(path, "is neither a string nor a list of texts");
  std::string text;
  size_t index = 0;
  for (const Json& part : content) text += ReadPart(Object(part, Format("{}[{}]", path, index++)));
  return text;
}

class ListReader {
 public:
  explicit ListReader(const MessageRules& rules) : rules_(rules) {}

  ReadConversation Read(const Json& list) {
    for (const Json& message : list) {
      const std::string path = Format("messages[{}]", read_.messages.size());
      read_.messages.push_back(ReadMessage(Object(message, path)));
    }
    return std::move(read_);
  }

 private:
  ChatMessage ReadMessage(const Object& message) {
    ChatMessage read;
    read.role = message.RequiredString("role");
    if (read.role.empty()) Refuse(message.PathOf("role"), "is empty");
    if (!rules_.allows_other_roles && !IsUsualRole(read.role)) {
      Refuse(
          message.PathOf("role"),
          Format("is \"{}\", but must be system, developer, user, assistant or tool", read.role));
    }
    if (const Json* const images = message.Find("images"); images != nullptr && !images->empty()) {
      Refuse(message.PathOf("images"), "is not supported: this model reads only texts",
             "unsupported_content");
    }
    RefuseIfThere(message, "audio", "is not supported; leave it out");
    RefuseIfThere(message, "function_call", "is not supported; use tool_calls");
    fields_ = Json::object();
    const bool has_calls = ReadCalls(message);
    const Json* const content = message.Find("content");
    // An answer may consist of calls or reasoning, and in some programs' files of nothing.
    const bool needs_content = !has_calls && read.role != "assistant";
    if (content != nullptr) {
      read.content = ReadContentAt(*content, message.PathOf("content"));
    } else if (needs_content &&
               !(rules_.allows_other_roles && message.json().contains("content"))) {
      Refuse(message.PathOf("content"), "is missing");
    }
    ReadOthers(message, read.role);
    if (!fields_.empty()) read.fields = WriteJson(fields_);
    return read;
  }

  static void RefuseIfThere(const Object& message, std::string_view name, std::string problem) {
    if (message.Find(name) == nullptr) return;
    Refuse(message.PathOf(name), std::move(problem), "unsupported_parameter");
  }

  // A call's arguments as an object. Text that is none stays text: the template shows it.
  Json ReadArguments(const Object& function) {
    const Json* const given = function.Find("arguments");
    if (given == nullptr || *given == "") return Json::object();
    const std::string path = function.PathOf("arguments");
    if (!given->is_object() && !given->is_string()) {
      Refuse(path, "is neither a string with JSON nor an object");
    }
    Json arguments = given->is_object()
                         ? *given
                         : rules_.parse(given->get_ref<const std::string&>()).value_or(*given);
    num_argument_values_ += CountValues(arguments);
    if (num_argument_values_ > rules_.max_argument_values) {
      Refuse(path, Format("has more than {} values, with the arguments before it",
                          rules_.max_argument_values));
    }
    return arguments;
  }

  bool ReadCalls(const Object& message) {
    const Json* const calls = message.Find("tool_calls");
    if (calls == nullptr) return false;
    const std::string path = message.PathOf("tool_calls");
    if (!calls->is_array()) Refuse(path, "is not a list");
    if (calls->empty()) return false;
    Json read = Json::array();
    if (calls->size() > rules_.max_messages - num_calls_) {
      Refuse(path, Format("has more than {} calls, with those before them", rules_.max_messages));
    }
    num_calls_ += calls->size();
    for (const Json& call : *calls) {
      const Object fields(call, Format("{}[{}]", path, read.size()));
      const Json* const value = fields.Find("function");
      if (value == nullptr) Refuse(fields.PathOf("function"), "is missing");
      const Object function(*value, fields.PathOf("function"));
      const std::string name = function.RequiredString("name");
      const std::string id = fields.String("id").value_or("");
      Json item = Json::object();
      if (!id.empty()) {
        item["id"] = id;
        called_.emplace_back(id, name);
      }
      item["type"] = "function";
      item["function"] = {{"name", name}, {"arguments", ReadArguments(function)}};
      read.push_back(std::move(item));
    }
    fields_["tool_calls"] = std::move(read);
    return true;
  }

  void ReadOthers(const Object& message, std::string_view role) {
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
    for (const auto& [key, value] : message.json().items()) {
      if (value.is_null() || (value.is_structured() && value.empty())) continue;
      if (!std::ranges::contains(kKnownFields, key)) {
        read_.unknown_fields.push_back(message.PathOf(key));
      }
    }
  }

  const MessageRules& rules_;
  ReadConversation read_;
  size_t num_calls_ = 0;
  size_t num_argument_values_ = 0;
  Json fields_;                                              // What the message has that is read.
  std::vector<std::pair<std::string, std::string>> called_;  // Ids and names of earlier calls.
};

}  // namespace

bool IsUsualRole(std::string_view role) { return std::ranges::contains(kRoles, role); }

std::expected<ReadConversation, MessageProblem> ReadMessageList(const Json& list,
                                                                const MessageRules& rules) {
  try {
    if (list.empty()) Refuse("messages", "is empty: there is nothing to answer");
    if (list.size() > rules.max_messages) {
      Refuse("messages", Format("has more than {} messages", rules.max_messages));
    }
    return ListReader(rules).Read(list);
  } catch (MessageProblem& problem) {
    return std::unexpected(std::move(problem));
  }
}

std::expected<std::string, MessageProblem> ReadMessageContent(const Json& content,
                                                              const std::string& path) {
  try {
    return ReadContentAt(content, path);
  } catch (MessageProblem& problem) {
    return std::unexpected(std::move(problem));
  }
}

}  // namespace cria
