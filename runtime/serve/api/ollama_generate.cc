// POST /api/generate

#include <optional>
#include <utility>
#include <vector>

#include "serve/api/answer_job.h"
#include "serve/api/chat_prompt.h"
#include "serve/api/ollama_json.h"
#include "serve/api/paths.h"
#include "serve/api/prompts.h"
#include "serve/api/request_error.h"

namespace cria::serve {
namespace {

class OllamaTextWriter final : public AnswerWriter {
 public:
  OllamaTextWriter(ApiState& api_state, Response& to, bool is_streamed)
      : AnswerWriter(api_state, to), is_streamed_(is_streamed) {}

  void BeginChoice(size_t /*index*/) override {}
  void OnText(AnswerPart part, std::string_view text) override {
    const bool is_answer = part == AnswerPart::kAnswer;
    if (!is_streamed_) {
      (is_answer ? text_ : thinking_) += text;
      return;
    }
    Json answer = Head(is_answer ? text : "");
    if (!is_answer) answer["thinking"] = text;
    answer["done"] = false;
    response().Stream(answer);
  }
  void OnCall(size_t, const std::string&, const std::string&) override {}
  void OnArguments(size_t, std::string_view) override {}
  void OnToken(TokenLogProbability /*token*/) override {}

  void EndChoice(const AnswerEnd& end) override {
    Json answer = Head(text_);
    if (!thinking_.empty()) answer["thinking"] = thinking_;
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
  Json Head(std::string_view text) const {
    return {{"model", state().model_name},
            {"created_at", TimeText(std::chrono::system_clock::now())},
            {"response", text}};
  }

  const bool is_streamed_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::string text_;
  std::string thinking_;
};

void RefuseUnsupportedFields(const Fields& fields) {
  fields.Unsupported("suffix", {""});
  fields.Unsupported("images", {Json::array()}, "is not supported: this model reads only texts");
  fields.Unsupported("template", {""}, "is not supported; use raw to write the whole prompt");
  fields.Unsupported("context", {Json::array()},
                     "is not supported; send earlier messages to /api/chat");
}

}  // namespace

void HandleOllamaGenerate(Exchange& exchange) {
  const Json body = ReadBody(exchange.request.body);
  const Fields fields(body);
  ApiState& state = exchange.state;
  RefuseUnsupportedFields(fields);
  const std::string prompt = fields.String("prompt").value_or("");
  const std::string system = fields.String("system").value_or("");
  const AnswerOptions options = ReadOllamaOptions(state, fields);
  const bool is_streamed = fields.Bool("stream").value_or(true);
  if (prompt.empty()) {
    return SendNow(exchange, {{"model", state.model_name},
                              {"created_at", TimeText(std::chrono::system_clock::now())},
                              {"response", ""},
                              {"done_reason", "load"},
                              {"done", true}});
  }
  if (fields.Bool("raw").value_or(false)) {
    return Submit(exchange, [&state, prompt, options, is_streamed](Response& response) {
      OllamaTextWriter writer(state, response, is_streamed);
      AnswerTexts(state, EncodePrompts(state.engine, {{.text = prompt}}), options, response,
                  writer);
    });
  }
  ChatRequest request;
  if (!system.empty()) request.messages.push_back({"system", system});
  request.messages.push_back({"user", prompt});
  request.options = options;
  if (fields.Has("think")) {
    SetThinking(state.engine, fields.Find("think")->is_string() || *fields.Bool("think"), request);
  }
  Submit(exchange, [&state, request = std::move(request), is_streamed](Response& response) {
    OllamaTextWriter writer(state, response, is_streamed);
    AnswerChat(state, request, response, writer);
  });
}

}  // namespace cria::serve
