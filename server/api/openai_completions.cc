// POST /v1/completions

#include <optional>
#include <utility>
#include <vector>

#include "core/format.h"
#include "server/api/answer_job.h"
#include "server/api/infill.h"
#include "server/api/log_probability_json.h"
#include "server/api/paths.h"
#include "server/api/text_answer.h"
#include "server/requests/answer_format.h"
#include "server/requests/chat_request.h"
#include "server/requests/prompts.h"
#include "server/requests/request_error.h"
#include "server/requests/sampling_fields.h"
#include "server/requests/unique_id.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

struct CompletionRequest {
  std::vector<PromptText> prompts;
  AnswerOptions options;
  bool has_echo = false;
  std::string suffix;  // What follows the answers; "": nothing is known of it.
  StreamFields stream;
};

Json MostLikelyJson(const TokenLogProbability& token) {
  Json most_likely = Json::object();
  for (const auto& [other, log_probability] : token.most_likely) {
    most_likely[ValidText(other)] = log_probability;
  }
  return most_likely;
}

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}: a list for each.
class CompletionLogProbabilities {
 public:
  void Add(const TokenLogProbability& token) {
    json_["tokens"].push_back(ValidText(token.text));
    json_["token_logprobs"].push_back(token.log_probability);
    json_["top_logprobs"].push_back(MostLikelyJson(token));
    json_["text_offset"].push_back(token.first_character);
  }
  size_t size() const { return json_["tokens"].size(); }
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

// What both forms of the answer begin with.
class CompletionWriter : public AnswerWriter {
 public:
  CompletionWriter(Exchange& exchange, Response& to, const CompletionRequest& request)
      : AnswerWriter(exchange, to),
        request_(request),
        head_({{"id", "cmpl-" + UniqueId(24)},
               {"object", "text_completion"},
               {"created", std::time(nullptr)},
               {"model", exchange.model().name},
               {"system_fingerprint", "cria-" + exchange.state.options.version}}) {}

  void OnCall(size_t, const std::string&, const std::string&) override {}
  void OnArguments(size_t, std::string_view) override {}

 protected:
  const Json& head() const { return head_; }
  void Add(const AnswerEnd& end) { AddUsage(usage_, end); }
  const AnswerEnd& usage() const { return usage_; }
  bool has_usage() const { return request_.stream.has_usage; }
  // What the answer's text begins with.
  std::string Echo(size_t index) const {
    if (!request_.has_echo) return "";
    return TextOf(model().engine, request_.prompts[index / request_.options.num_choices]);
  }

 private:
  const CompletionRequest& request_;
  Json head_;
  AnswerEnd usage_;
};

// The most likely tokens are sent while they come, because they take much memory.
class WholeCompletion final : public CompletionWriter {
 public:
  WholeCompletion(Exchange& exchange, Response& to, const CompletionRequest& request)
      : CompletionWriter(exchange, to, request), text_(to) {
    text_.Add("{" + TextAnswer::Members(head()) + R"(,"choices":[)");
  }

  void BeginChoice(size_t index) override {
    content_ = Echo(index);
    tokens_.clear();
    values_.clear();
    offsets_.clear();
    text_.Add((index > 0 ? ",{" : "{") + TextAnswer::Members({{"index", index}}));
  }
  void OnText(AnswerPart /*part*/, std::string_view text) override { content_ += text; }
  void OnToken(TokenLogProbability token) override {
    text_.Add(tokens_.empty() ? R"(,"logprobs":{"top_logprobs":[)" : ",");
    text_.Add(Written(MostLikelyJson(token)));
    AddItem(tokens_, ValidText(token.text));
    AddItem(values_, token.log_probability);
    AddItem(offsets_, token.first_character);
  }

  void EndChoice(const AnswerEnd& end) override {
    Add(end);
    if (tokens_.empty()) {
      text_.Add(R"(,"logprobs":null)");
    } else {
      text_.Add(R"(],"tokens":[)");
      text_.Add(tokens_);
      text_.Add(R"(],"token_logprobs":[)");
      text_.Add(values_);
      text_.Add(R"(],"text_offset":[)");
      text_.Add(offsets_);
      text_.Add("]}");
    }
    text_.Add("," +
              TextAnswer::Members({{"text", std::exchange(content_, {})},
                                   {"finish_reason", FinishReasonName(end.reason)}}) +
              "}");
  }

  void Finish() override {
    text_.Add("]," + TextAnswer::Members(UsageAndTimings(usage())) + "}");
    text_.Finish();
  }

 private:
  static void AddItem(std::string& list, const Json& item) {
    if (!list.empty()) list += ',';
    list += Written(item);
  }

  TextAnswer text_;
  std::string content_;
  // Lists of the choice, as JSON has them between brackets.
  std::string tokens_;
  std::string values_;
  std::string offsets_;
};

class StreamedCompletion final : public CompletionWriter {
 public:
  using CompletionWriter::CompletionWriter;

  void BeginChoice(size_t index) override {
    index_ = index;
    log_probabilities_.Take();
    if (const std::string echo = Echo(index); !echo.empty()) Send(echo, nullptr);
  }
  void OnText(AnswerPart /*part*/, std::string_view text) override { Send(text, nullptr); }
  void OnToken(TokenLogProbability token) override {
    log_probabilities_.Add(token);
    if (log_probabilities_.size() >= kMaxHeldTokens) Send("", nullptr);
  }

  void EndChoice(const AnswerEnd& end) override {
    Add(end);
    Send("", FinishReasonName(end.reason));
  }

  void Finish() override {
    if (has_usage()) {
      Json answer = head();
      answer["choices"] = Json::array();
      answer.update(UsageAndTimings(usage()));
      response().Stream(answer);
    }
    response().EndStream();
  }

 private:
  void Send(std::string_view text, const char* finish_reason) {
    Json choice = {
        {"text", text}, {"index", index_}, {"logprobs", nullptr}, {"finish_reason", nullptr}};
    if (finish_reason != nullptr) choice["finish_reason"] = finish_reason;
    if (log_probabilities_.size() > 0) choice["logprobs"] = log_probabilities_.Take();
    Json chunk = head();
    chunk["choices"] = Json::array({std::move(choice)});
    response().Stream(chunk);
  }

  size_t index_ = 0;
  CompletionLogProbabilities log_probabilities_;
};

std::vector<TextPrompt> PromptsOf(const ServedModel& model, const CompletionRequest& request) {
  if (request.suffix.empty()) return EncodePrompts(model.engine, request.prompts);
  std::vector<TextPrompt> prompts;
  prompts.reserve(request.prompts.size());
  for (const PromptText& prompt : request.prompts) {
    const InfillText text = {.prefix = TextOf(model.engine, prompt), .suffix = request.suffix};
    prompts.push_back(InfillPrompt(model, text, request.options.max_tokens));
  }
  return prompts;
}

CompletionRequest ReadRequest(Exchange& exchange) {
  constexpr int64_t kMaxLogProbabilities = 5;  // OpenAI's.
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  RefuseUnsupportedInCompletions(fields);
  const size_t vocab_size = exchange.model().engine.decoder().vocab_size();
  CompletionRequest request = {.prompts = ReadPrompts(fields, vocab_size),
                               .options = ReadAnswerOptions(fields),
                               .has_echo = fields.Bool("echo").value_or(false),
                               .suffix = fields.String("suffix").value_or(""),
                               .stream = ReadStreamFields(fields)};
  static_cast<void>(fields.String("model"));
  if (!request.suffix.empty()) CheckInfill(exchange.model(), "suffix");
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
  const CompletionRequest request = ReadRequest(exchange);
  Submit(exchange, [&](Response& response) {
    const auto answer = [&](AnswerWriter&& writer) {
      AnswerTexts(exchange, PromptsOf(exchange.model(), request), request.options, response,
                  writer);
    };
    if (request.stream.is_streamed) {
      answer(StreamedCompletion(exchange, response, request));
    } else {
      answer(WholeCompletion(exchange, response, request));
    }
  });
}

}  // namespace cria::server
