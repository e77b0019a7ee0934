// POST /api/generate

#include <optional>
#include <utility>
#include <vector>

#include "serve/api/answer_job.h"
#include "serve/api/ollama_json.h"
#include "serve/api/ollama_writer.h"
#include "serve/api/paths.h"
#include "serve/api/prompts.h"
#include "serve/api/request_error.h"
#include "serve/api/thinking_fields.h"
#include "serve/api/unsupported_fields.h"

namespace cria::serve {
namespace {

class OllamaTextWriter final : public OllamaWriter {
 public:
  using OllamaWriter::OllamaWriter;

  void OnText(AnswerPart part, std::string_view text) override {
    const bool is_answer = part == AnswerPart::kAnswer;
    if (!is_streamed()) {
      (is_answer ? text_ : thinking_) += text;
    } else if (is_answer) {
      SendPart({{"response", text}});
    } else {
      SendPart({{"response", ""}, {"thinking", text}});
    }
  }
  void OnCall(size_t, const std::string&, const std::string&) override {}
  void OnArguments(size_t, std::string_view) override {}

  void EndChoice(const AnswerEnd& end) override {
    Json content = {{"response", text_}};
    if (!thinking_.empty()) content["thinking"] = thinking_;
    SendEnd(content, end);
  }

 private:
  std::string text_;
  std::string thinking_;
};

}  // namespace

void HandleOllamaGenerate(Exchange& exchange) {
  const Json body = ReadBody(exchange.request.body);
  const Fields fields(body);
  ApiState& state = exchange.state;
  RefuseUnsupportedInOllamaGenerate(fields);
  const std::string prompt = fields.String("prompt").value_or("");
  const std::string system = fields.String("system").value_or("");
  const AnswerOptions options = ReadOllamaOptions(state, fields);
  const bool is_streamed = fields.Bool("stream").value_or(true);
  if (prompt.empty()) {
    return SendOllamaLoaded(exchange, fields, {{"response", ""}});
  }
  if (fields.Bool("raw").value_or(false)) {
    if (!system.empty()) RefuseField("system", "is not supported together with raw");
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
  ReadOllamaThink(state.engine.chat_template(), fields, request);
  Submit(exchange, [&state, request = std::move(request), is_streamed](Response& response) {
    OllamaTextWriter writer(state, response, is_streamed);
    AnswerChat(state, request, response, writer);
  });
}

}  // namespace cria::serve
