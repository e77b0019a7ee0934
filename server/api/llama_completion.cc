// llama-server's POST /completion and /infill

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "server/api/answer_job.h"
#include "server/api/infill.h"
#include "server/api/log_probability_json.h"
#include "server/api/paths.h"
#include "server/api/sampling_json.h"
#include "server/api/text_answer.h"
#include "server/requests/answer_format.h"
#include "server/requests/prompts.h"
#include "server/requests/request_error.h"
#include "server/requests/sampling_fields.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

struct LlamaCompletion {
  PromptText prompt;
  std::optional<InfillText> infill;  // Then the prompt is a part of it.
  AnswerOptions options;
  bool is_streamed = false;
};

const char* StopTypeName(const AnswerEnd& end) {
  if (!end.stop_string.empty()) return "word";
  return end.reason == FinishReason::kLength ? "limit" : "eos";
}

Json SettingsOf(const LlamaCompletion& request) {
  const AnswerOptions& options = request.options;
  Json settings = SamplerJson(options.sampler);
  settings["seed"] = options.sampler.seed;
  settings["n_predict"] = options.max_tokens == 0 ? Json(-1) : Json(options.max_tokens);
  settings["max_tokens"] = settings["n_predict"];
  settings["stop"] = options.stop;
  settings["ignore_eos"] = options.ignore_eos;
  settings["stream"] = request.is_streamed;
  settings["n_probs"] = options.top_log_probabilities;
  return settings;
}

class LlamaCompletionWriter final : public AnswerWriter {
 public:
  LlamaCompletionWriter(Exchange& exchange, Response& response, const LlamaCompletion& request)
      : AnswerWriter(exchange, response), request_(request), text_(response) {}

  void OnPrompt(size_t prompt_tokens, size_t /*cached_tokens*/) override {
    prompt_tokens_ = prompt_tokens;
  }
  void BeginChoice(size_t /*index*/) override {}
  void OnCall(size_t, const std::string&, const std::string&) override {}
  void OnArguments(size_t, std::string_view) override {}
  void OnText(AnswerPart /*part*/, std::string_view text) override {
    if (request_.is_streamed) {
      SendPart(text);
    } else {
      content_ += text;
    }
  }
  // Log-probabilities are sent while they come, because they take much memory.
  void OnToken(TokenLogProbability token) override {
    if (request_.is_streamed) {
      tokens_.push_back(LogProbabilityJson(token));
      if (tokens_.size() >= kMaxHeldTokens) SendPart("");
      return;
    }
    text_.Add(std::exchange(has_tokens_, true) ? "," : R"({"completion_probabilities":[)");
    text_.Add(Written(LogProbabilityJson(token)));
  }

  void EndChoice(const AnswerEnd& end) override {
    Json value = {{"index", 0},
                  {"content", content_},
                  {"tokens", Json::array()},
                  {"stop", true},
                  {"model", model().name},
                  {"tokens_predicted", end.completion_tokens},
                  {"tokens_evaluated", end.prompt_tokens},
                  {"tokens_cached", end.prompt_tokens + end.completion_tokens},
                  {"generation_settings", SettingsOf(request_)},
                  {"truncated", false},
                  {"stop_type", StopTypeName(end)},
                  {"stopping_word", end.stop_string},
                  {"timings", TimingsOf(end)}};
    if (request_.is_streamed) {
      AddTokens(value);
      response().Stream(value);
      return response().EndStream();
    }
    text_.Add((has_tokens_ ? "]," : "{") + TextAnswer::Members(value) + "}");
    text_.Finish();
  }
  void Finish() override {}

 private:
  void AddTokens(Json& value) {
    if (!tokens_.empty()) value["completion_probabilities"] = std::exchange(tokens_, Json::array());
  }
  void SendPart(std::string_view text) {
    Json value = {{"index", 0},
                  {"content", text},
                  {"tokens", Json::array()},
                  {"stop", false},
                  {"tokens_evaluated", prompt_tokens_}};
    AddTokens(value);
    response().Stream(value);
  }

  const LlamaCompletion& request_;
  TextAnswer text_;
  std::string content_;
  size_t prompt_tokens_ = 0;
  bool has_tokens_ = false;
  Json tokens_ = Json::array();  // A stream's, not sent yet.
};

// What both paths have.
LlamaCompletion ReadOptions(const Fields& fields) {
  RefuseUnsupportedInCompletions(fields);
  static_cast<void>(fields.String("model"));
  LlamaCompletion read;
  read.options = ReadAnswerOptions(fields);
  read.is_streamed = fields.Bool("stream").value_or(false);
  if (read.options.num_choices != 1) {
    RefuseField("n", "is not supported unless it is 1; /v1/completions makes several choices",
                "unsupported_parameter");
  }
  read.options.shape = ReadAnswerFormat(fields);
  ReadNumProbabilities(fields, read.options);
  return read;
}

LlamaCompletion ReadCompletion(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  LlamaCompletion read = ReadOptions(fields);
  std::vector<PromptText> prompts =
      ReadPrompts(fields, exchange.model().engine.decoder().vocab_size());
  if (prompts.size() != 1) {
    RefuseField("prompt", "has several prompts, which only /v1/completions takes");
  }
  read.prompt = std::move(prompts.front());
  return read;
}

InfillText ReadInfillText(const Fields& fields) {
  constexpr size_t kMaxExtras = 256;
  InfillText text = {.prefix = fields.RequiredString("input_prefix"),
                     .suffix = fields.RequiredString("input_suffix"),
                     .prompt = fields.String("prompt").value_or("")};
  const Json* const extras = fields.List("input_extra");
  if (extras == nullptr) return text;
  if (extras->size() > kMaxExtras) {
    RefuseField("input_extra", Format("has more than {} files", kMaxExtras));
  }
  text.extras.reserve(extras->size());
  for (const Json& value : *extras) {
    const Fields file(value, Format("input_extra[{}]", text.extras.size()));
    text.extras.push_back({file.String("filename").value_or("tmp"), file.RequiredString("text")});
  }
  return text;
}

LlamaCompletion ReadInfill(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  LlamaCompletion read = ReadOptions(fields);
  read.infill = ReadInfillText(fields);
  CheckInfill(exchange.model(), "input_suffix");
  return read;
}

void Answer(Exchange& exchange, const LlamaCompletion& request) {
  Submit(exchange, [&](Response& response) {
    LlamaCompletionWriter writer(exchange, response, request);
    const std::vector<TextPrompt> prompts =
        request.infill ? std::vector{InfillPrompt(exchange.model(), *request.infill,
                                                  request.options.max_tokens)}
                       : EncodePrompts(exchange.model().engine, {request.prompt});
    AnswerTexts(exchange, prompts, request.options, response, writer);
  });
}

}  // namespace

void HandleLlamaCompletion(Exchange& exchange) { Answer(exchange, ReadCompletion(exchange)); }

void HandleInfill(Exchange& exchange) { Answer(exchange, ReadInfill(exchange)); }

}  // namespace cria::server
