// POST /api/generate

#include <optional>
#include <utility>
#include <vector>

#include "server/api/answer_job.h"
#include "server/api/infill.h"
#include "server/api/ollama_json.h"
#include "server/api/ollama_writer.h"
#include "server/api/paths.h"
#include "server/requests/prompts.h"
#include "server/requests/request_error.h"
#include "server/requests/thinking_fields.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
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
  void SendTokens() override { SendPart({{"response", ""}}); }

  std::string text_;
  std::string thinking_;
};

struct OllamaGenerateBody {
  ChatRequest chat;  // The prompt is its last message.
  bool is_raw = false;
  std::string suffix;  // What follows the answer; "": nothing is known of it.
  bool is_streamed = true;
};

// Nothing if there is nothing to answer, and that was said.
std::optional<OllamaGenerateBody> ReadOllamaGenerate(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  RefuseUnsupportedInOllamaGenerate(fields);
  std::string prompt = fields.String("prompt").value_or("");
  std::string system = fields.String("system").value_or("");
  OllamaGenerateBody read;
  read.is_raw = fields.Bool("raw").value_or(false);
  read.is_streamed = fields.Bool("stream").value_or(true);
  if (exchange.has_unloaded || prompt.empty()) {
    SendOllamaLoaded(exchange, fields, {{"response", ""}});
    return std::nullopt;
  }
  read.chat.options = ReadOllamaOptions(exchange, fields);
  if (read.is_raw && !system.empty()) {
    RefuseField("system", "is not supported together with raw");
  }
  read.suffix = fields.String("suffix").value_or("");
  if (!read.suffix.empty()) {
    CheckInfill(exchange.model(), "suffix");
    if (!system.empty()) RefuseField("system", "is not supported together with suffix");
  }
  if (!system.empty()) read.chat.messages.push_back({"system", std::move(system)});
  read.chat.messages.push_back({"user", std::move(prompt)});
  if (!read.is_raw && read.suffix.empty()) {
    ReadOllamaThink(exchange.model().engine.chat_template(), fields, read.chat);
  }
  return read;
}

}  // namespace

void HandleOllamaGenerate(Exchange& exchange) {
  std::optional<OllamaGenerateBody> body = ReadOllamaGenerate(exchange);
  if (!body) return;
  Submit(exchange, [&](Response& response) {
    OllamaTextWriter writer(exchange, response, body->is_streamed);
    if (!body->suffix.empty()) {
      const InfillText text = {.prefix = std::move(body->chat.messages.back().content),
                               .suffix = std::move(body->suffix)};
      const AnswerOptions& options = body->chat.options;
      return AnswerTexts(exchange, {InfillPrompt(exchange.model(), text, options.max_tokens)},
                         options, response, writer);
    }
    if (!body->is_raw) return AnswerChat(exchange, std::move(body->chat), response, writer);
    const PromptText prompt = {.text = std::move(body->chat.messages.back().content)};
    AnswerTexts(exchange, EncodePrompts(exchange.model().engine, {prompt}), body->chat.options,
                response, writer);
  });
}

}  // namespace cria::server
