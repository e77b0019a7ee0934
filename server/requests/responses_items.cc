#include "server/requests/responses_items.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "server/requests/conversation_builder.h"
#include "server/requests/json_body.h"
#include "server/requests/messages.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

// The texts of a list of {"type": type, "text": …}.
std::string ReadTexts(const Fields& item, std::string_view name, std::string_view type) {
  const Json* const list = item.List(name);
  if (list == nullptr) return "";
  std::string text;
  size_t index = 0;
  for (const Json& value : *list) {
    const Fields part(value, Format("{}[{}]", item.PathOf(name), index++));
    if (part.RequiredString("type") != type) {
      RefuseField(part.PathOf("type"), Format("is not \"{}\"", type), "unsupported_content");
    }
    text += part.RequiredString("text");
  }
  return text;
}

std::string RequiredContent(const Fields& item, std::string_view name) {
  if (!item.Has(name)) RefuseField(item.PathOf(name), "is missing");
  return ReadContent(item, name);
}

// Reads items one after the other.
class ItemReader {
 public:
  std::vector<ChatMessage> Read(const Fields& request) {
    system_ = request.String("instructions");
    const Json* const input = request.Find("input");
    if (input == nullptr) RefuseField("input", "is missing");
    if (input->is_string()) {
      EndSystem();
      conversation_.Add({"user", input->get<std::string>()});
      return conversation_.Take();
    }
    if (!input->is_array()) RefuseField("input", "is neither a string nor a list of items");
    if (input->empty()) RefuseField("input", "is empty: there is nothing to answer");
    size_t index = 0;
    for (const Json& item : *input) ReadItem(Fields(item, Format("input[{}]", index++)));
    EndSystem();
    EndAnswer();
    return conversation_.Take();
  }

 private:
  enum class Part : uint8_t { kNone, kReasoning, kText, kCall };

  void ReadItem(const Fields& item) {
    const std::string type = item.String("type").value_or("message");
    if (type == "message") {
      ReadMessage(item);
    } else if (type == "reasoning") {
      ReadReasoning(item);
    } else if (type == "function_call") {
      ReadCall(item);
    } else if (type == "function_call_output") {
      EndAnswer();
      EndSystem();
      const std::string id = item.RequiredString("call_id");
      conversation_.AddResult(id, RequiredContent(item, "output"));
    } else {
      RefuseField(item.PathOf("type"),
                  Format("is \"{}\", but must be message, reasoning, function_call or "
                         "function_call_output here",
                         type),
                  "unsupported_content");
    }
  }

  void ReadMessage(const Fields& item) {
    const std::string role = item.RequiredString("role");
    std::string content = RequiredContent(item, "content");
    if (role == "assistant") {
      // Answers that follow each other are no parts of one.
      if (last_ == Part::kText) EndAnswer();
      Begin(Part::kText);
      text_ += content;
    } else if (role == "system" || role == "developer") {
      EndAnswer();
      AddSystem(std::move(content));
    } else if (role == "user") {
      EndAnswer();
      EndSystem();
      conversation_.Add({"user", std::move(content)});
    } else {
      RefuseField(item.PathOf("role"),
                  Format("is \"{}\", but must be user, assistant, system or developer", role));
    }
  }

  // Other servers encrypt reasoning or sum it up; this one sends it as it is.
  void ReadReasoning(const Fields& item) {
    std::string reasoning = ReadTexts(item, "content", "reasoning_text");
    if (reasoning.empty()) reasoning = ReadTexts(item, "summary", "summary_text");
    static_cast<void>(item.String("encrypted_content"));
    // An answer begins with its reasoning.
    if (last_ == Part::kText || last_ == Part::kCall) EndAnswer();
    Begin(Part::kReasoning);
    reasoning_ += reasoning;
  }

  void ReadCall(const Fields& item) {
    std::string id = item.RequiredString("call_id");
    std::string name = item.RequiredString("name");
    const std::string text = item.String("arguments").value_or("");
    // Text that is no JSON stays text: the template shows it.
    Json arguments = text.empty() ? Json::object() : TryReadJson(text).value_or(Json(text));
    Begin(Part::kCall);
    calls_.push_back(conversation_.CallOf(std::move(id), std::move(name), std::move(arguments)));
  }

  // A part of an answer follows.
  void Begin(Part part) {
    EndSystem();
    last_ = part;
  }
  void EndAnswer() {
    if (last_ == Part::kNone) return;
    conversation_.AddAnswer(std::exchange(text_, {}), std::exchange(reasoning_, {}),
                            std::exchange(calls_, Json::array()));
    last_ = Part::kNone;
  }

  void AddSystem(std::string content) {
    if (!is_at_begin_) return conversation_.Add({"system", std::move(content)});
    if (system_) {
      *system_ += "\n\n" + content;
    } else {
      system_ = std::move(content);
    }
  }
  // Another message follows those of the system at the beginning.
  void EndSystem() {
    is_at_begin_ = false;
    if (!system_) return;
    conversation_.Add({"system", *std::exchange(system_, std::nullopt)});
  }

  ConversationBuilder conversation_{"input"};
  std::optional<std::string> system_;  // Not added yet.
  bool is_at_begin_ = true;

  // The answer that is read, not added yet.
  Part last_ = Part::kNone;
  std::string text_;
  std::string reasoning_;
  Json calls_ = Json::array();
};

}  // namespace

std::vector<ChatMessage> ReadResponsesInput(const Fields& request) {
  return ItemReader().Read(request);
}

}  // namespace cria::server
