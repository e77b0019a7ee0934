// POST /v1/completions

#include <optional>
#include <utility>
#include <vector>

#include "core/format.h"
#include "serve/api/answer_format.h"
#include "serve/api/answer_job.h"
#include "serve/api/chat_request.h"
#include "serve/api/log_probability_json.h"
#include "serve/api/paths.h"
#include "serve/api/prompts.h"
#include "serve/api/request_error.h"
#include "serve/api/sampling_fields.h"
#include "serve/api/unique_id.h"
#include "serve/api/unsupported_fields.h"

namespace cria::serve {
namespace {

struct CompletionRequest {
  std::vector<PromptText> prompts;
  AnswerOptions options;
  bool has_echo = false;
  StreamFields stream;
};

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}: a list for each.
class CompletionLogProbabilities {
 public:
  void Add(const TokenLogProbability& token) {
    json_["tokens"].push_back(ValidText(token.text));
    json_["token_logprobs"].push_back(token.log_probability);
    Json most_likely = Json::object();
    for (const auto& [other, log_probability] : token.most_likely) {
      most_likely[ValidText(other)] = log_probability;
    }
    json_["top_logprobs"].push_back(std::move(most_likely));
    json_["text_offset"].push_back(token.first_character);
  }
  bool is_empty() const { return json_["tokens"].empty(); }
  Json Take() { return std::exchange(json_, Empty()); }

 private:
  static Json Empty() {
    return {{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()},
            {"text_offset", Json::array()}};
  }

  Json json_ = Empty();
};

class CompletionWriter final : public AnswerWriter {
 public:
  CompletionWriter(ApiState& api_state, Response& to, const CompletionRequest& request)
      : AnswerWriter(api_state, to),
        request_(request),
        head_({{"id", "cmpl-" + UniqueId(24)},
               {"object", "text_completion"},
               {"created", std::time(nullptr)},
               {"model", api_state.model_name},
               {"system_fingerprint", "cria-" + api_state.options.version}}) {}

  void BeginChoice(size_t index) override {
    index_ = index;
    log_probabilities_.Take();
    text_.clear();
    if (request_.has_echo) {
      const PromptText& prompt = request_.prompts[index / request_.options.num_choices];
      TakePiece(TextOf(state().engine, prompt));
    }
  }
  void OnText(AnswerPart /*part*/, std::string_view text) override { TakePiece(text); }
  void OnCall(size_t, const std::string&, const std::string&) override {}
  void OnArguments(size_t, std::string_view) override {}
  void OnToken(TokenLogProbability token) override { log_probabilities_.Add(token); }

  void EndChoice(const AnswerEnd& end) override {
    AddUsage(usage_, end);
    if (request_.stream.is_streamed) return StreamChoice("", FinishReasonName(end.reason));
    choices_.push_back(Choice(text_, FinishReasonName(end.reason)));
  }

  void Finish() override {
    Json answer = head_;
    answer["choices"] = std::move(choices_);
    answer["usage"] = UsageOf(usage_);
    answer["timings"] = TimingsOf(usage_);
    if (!request_.stream.is_streamed) return response().Send(answer);
    if (request_.stream.has_usage) response().Stream(answer);
    response().EndStream();
  }

 private:
  void TakePiece(std::string_view text) {
    if (request_.stream.is_streamed) return StreamChoice(text, nullptr);
    text_ += text;
  }

  Json Choice(std::string_view text, const char* finish_reason) {
    Json choice = {
        {"text", text}, {"index", index_}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
    if (finish_reason != nullptr) choice["finish_reason"] = finish_reason;
    if (!log_probabilities_.is_empty()) choice["logprobs"] = log_probabilities_.Take();
    return choice;
  }

  void StreamChoice(std::string_view text, const char* finish_reason) {
    Json chunk = head_;
    chunk["choices"] = Json::array({Choice(text, finish_reason)});
    response().Stream(chunk);
  }

  const CompletionRequest& request_;
  Json head_;
  size_t index_ = 0;
  std::string text_;
  CompletionLogProbabilities log_probabilities_;
  Json choices_ = Json::array();
  AnswerEnd usage_;
};

CompletionRequest ReadRequest(const Fields& fields, size_t vocab_size) {
  constexpr int64_t kMaxLogProbabilities = 5;  // OpenAI's.
  RefuseUnsupportedInCompletions(fields);
  CompletionRequest request = {.prompts = ReadPrompts(fields, vocab_size),
                               .options = ReadAnswerOptions(fields),
                               .has_echo = fields.Bool("echo").value_or(false),
                               .stream = ReadStreamFields(fields)};
  static_cast<void>(fields.String("model"));
  request.options.shape = ReadAnswerFormat(fields);
  if (const auto count = fields.Integer("logprobs", 0, kMaxLogProbabilities)) {
    request.options.log_probabilities = true;
    request.options.top_log_probabilities = static_cast<size_t>(*count);
  }
  ReadNumProbabilities(fields, request.options);
  if (request.has_echo && request.options.log_probabilities) {
    RefuseField("echo", "is not supported together with logprobs");
  }
  return request;
}

}  // namespace

void HandleOpenAiCompletions(Exchange& exchange) {
  const Json body = ReadBody(exchange.request.body);
  CompletionRequest request =
      ReadRequest(Fields(body), exchange.state.engine.decoder().vocab_size());
  Submit(exchange, [&state = exchange.state, request = std::move(request)](Response& response) {
    CompletionWriter writer(state, response, request);
    AnswerTexts(state, EncodePrompts(state.engine, request.prompts), request.options, response,
                writer);
  });
}

}  // namespace cria::serve
