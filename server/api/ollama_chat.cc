// POST /api/chat

#include <optional>
#include <utility>

#include "server/api/answer_job.h"
#include "server/api/ollama_json.h"
#include "server/api/ollama_writer.h"
#include "server/api/paths.h"
#include "server/requests/json_body.h"
#include "server/requests/messages.h"
#include "server/requests/thinking_fields.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

// A call's arguments are an object here; they are sent when they are complete.
class OllamaChatWriter final : public OllamaWriter {
 public:
  using OllamaWriter::OllamaWriter;

  void OnText(AnswerPart part, std::string_view text) override {
    SendCall();
    if (is_streamed()) {
      return SendMessage(part == AnswerPart::kAnswer
                             ? Json{{"role", "assistant"}, {"content", text}}
                             : Json{{"role", "assistant"}, {"content", ""}, {"thinking", text}});
    }
    (part == AnswerPart::kAnswer ? content_ : thinking_) += text;
  }
  void OnCall(size_t /*index*/, const std::string& /*id*/, const std::string& name) override {
    SendCall();
    call_name_ = name;
  }
  void OnArguments(size_t /*index*/, std::string_view piece) override { arguments_ += piece; }

  void EndChoice(const AnswerEnd& end) override {
    SendCall();
    Json message = {{"role", "assistant"}, {"content", content_}};
    if (!thinking_.empty()) message["thinking"] = thinking_;
    if (!calls_.empty()) message["tool_calls"] = calls_;
    SendEnd({{"message", std::move(message)}}, end);
  }

 private:
  void SendTokens() override { SendMessage({{"role", "assistant"}, {"content", ""}}); }
  void SendMessage(Json message) { SendPart({{"message", std::move(message)}}); }

  void SendCall() {
    if (!call_name_) return;
    // An answer that was cut off may end inside of the arguments.
    const std::optional<Json> arguments = TryReadJson(std::exchange(arguments_, {}));
    const std::string name = *std::exchange(call_name_, std::nullopt);
    if (!arguments) return;
    const Json call = {{"function", {{"name", name}, {"arguments", *arguments}}}};
    if (!is_streamed()) return calls_.push_back(call);
    SendMessage({{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}});
  }

  std::string content_;
  std::string thinking_;
  Json calls_ = Json::array();
  std::optional<std::string> call_name_;  // Not sent yet.
  std::string arguments_;
};

struct OllamaChatBody {
  ChatRequest chat;
  bool is_streamed = true;
};

// Nothing if there is nothing to answer, and that was said.
std::optional<OllamaChatBody> ReadOllamaChat(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  RefuseUnsupportedInOllamaChat(fields);
  const Json* const messages = fields.List("messages");
  if (exchange.has_unloaded || messages == nullptr || messages->empty()) {
    SendOllamaLoaded(exchange, fields, {{"message", {{"role", "assistant"}, {"content", ""}}}});
    return std::nullopt;
  }
  OllamaChatBody read;
  read.chat.messages = ReadMessages(fields);
  read.chat.options = ReadOllamaOptions(exchange, fields);
  read.chat.tools = ReadTools(fields);
  ReadOllamaThink(exchange.model().engine.chat_template(), fields, read.chat);
  read.is_streamed = fields.Bool("stream").value_or(true);
  return read;
}

}  // namespace

void HandleOllamaChat(Exchange& exchange) {
  std::optional<OllamaChatBody> body = ReadOllamaChat(exchange);
  if (!body) return;
  Submit(exchange, [&](Response& response) {
    OllamaChatWriter writer(exchange, response, body->is_streamed);
    AnswerChat(exchange, std::move(body->chat), response, writer);
  });
}

}  // namespace cria::server
