// POST /api/chat

#include <optional>
#include <utility>

#include "serve/api/answer_job.h"
#include "serve/api/chat_prompt.h"
#include "serve/api/messages.h"
#include "serve/api/ollama_json.h"
#include "serve/api/paths.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

// A call's arguments are an object here; they are sent when they are complete.
class OllamaChatWriter final : public AnswerWriter {
 public:
  OllamaChatWriter(ApiState& api_state, Response& to, bool is_streamed)
      : AnswerWriter(api_state, to), is_streamed_(is_streamed) {}

  void BeginChoice(size_t /*index*/) override {}
  void OnText(AnswerPart part, std::string_view text) override {
    SendCall();
    if (is_streamed_) {
      return Send(part == AnswerPart::kAnswer
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
  void OnToken(TokenLogProbability /*token*/) override {}

  void EndChoice(const AnswerEnd& end) override {
    SendCall();
    Json message = {{"role", "assistant"}, {"content", content_}};
    if (!thinking_.empty()) message["thinking"] = thinking_;
    if (!calls_.empty()) message["tool_calls"] = calls_;
    Json answer = Head();
    answer["message"] = std::move(message);
    AddOllamaEnd(answer, end, begin_);
    if (is_streamed_) {
      response().Stream(answer);
      response().EndStream();
    } else {
      response().Send(answer);
    }
  }
  void Finish() override {}

 private:
  Json Head() const {
    return {{"model", state().model_name},
            {"created_at", TimeText(std::chrono::system_clock::now())}};
  }

  void Send(Json message) {
    Json answer = Head();
    answer["message"] = std::move(message);
    answer["done"] = false;
    response().Stream(answer);
  }

  void SendCall() {
    if (!call_name_) return;
    // An answer that was cut off may end inside of the arguments.
    const std::optional<Json> arguments = TryReadJson(std::exchange(arguments_, {}));
    const std::string name = *std::exchange(call_name_, std::nullopt);
    if (!arguments) return;
    const Json call = {{"function", {{"name", name}, {"arguments", *arguments}}}};
    if (!is_streamed_) return calls_.push_back(call);
    Send({{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}});
  }

  const bool is_streamed_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string content_;
  std::string thinking_;
  Json calls_ = Json::array();
  std::optional<std::string> call_name_;  // Not sent yet.
  std::string arguments_;
};

}  // namespace

void HandleOllamaChat(Exchange& exchange) {
  const Json body = ReadBody(exchange.request.body);
  const Fields fields(body);
  ApiState& state = exchange.state;
  const Json* const messages = fields.List("messages");
  if (messages == nullptr || messages->empty()) {
    // This asks to load the model, which is always loaded.
    return SendNow(exchange, {{"model", state.model_name},
                              {"created_at", TimeText(std::chrono::system_clock::now())},
                              {"message", {{"role", "assistant"}, {"content", ""}}},
                              {"done_reason", "load"},
                              {"done", true}});
  }
  ChatRequest request;
  request.messages = ReadMessages(fields);
  request.options = ReadOllamaOptions(state, fields);
  request.tools = ReadTools(fields);
  if (const Json* const think = fields.Find("think"); think != nullptr) {
    // Some models have levels such as "low", which templates of these families do not know.
    SetThinking(state.engine, think->is_string() || fields.Bool("think").value(), request);
  }
  const bool is_streamed = fields.Bool("stream").value_or(true);
  Submit(exchange, [&state, request = std::move(request), is_streamed](Response& response) {
    OllamaChatWriter writer(state, response, is_streamed);
    AnswerChat(state, request, response, writer);
  });
}

}  // namespace cria::serve
