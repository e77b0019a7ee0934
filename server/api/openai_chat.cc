// POST /v1/chat/completions

#include <optional>
#include <utility>
#include <vector>

#include "server/api/answer_job.h"
#include "server/api/log_probability_json.h"
#include "server/api/paths.h"
#include "server/api/text_answer.h"
#include "server/requests/chat_request.h"
#include "server/requests/unique_id.h"

namespace cria::server {
namespace {

// What one choice says.
struct ChatChoice {
  std::string content;
  std::string reasoning;
  Json calls = Json::array();
};

Json CallJson(const std::string& id, const std::string& name, const std::string& arguments) {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

// What both forms of the answer begin with.
class ChatWriter : public AnswerWriter {
 public:
  ChatWriter(Exchange& exchange, Response& response, const char* object)
      : AnswerWriter(exchange, response),
        head_({{"id", "chatcmpl-" + UniqueId(24)},
               {"object", object},
               {"created", std::time(nullptr)},
               {"model", exchange.model().name},
               {"system_fingerprint", "cria-" + exchange.state.options.version}}) {}

 protected:
  const Json& head() const { return head_; }
  void Add(const AnswerEnd& end) { AddUsage(usage_, end); }
  const AnswerEnd& usage() const { return usage_; }

 private:
  Json head_;
  AnswerEnd usage_;
};

// Log-probabilities are sent while they come, because they take much memory.
class WholeChat final : public ChatWriter {
 public:
  WholeChat(Exchange& exchange, Response& response, bool has_log_probabilities)
      : ChatWriter(exchange, response, "chat.completion"),
        has_log_probabilities_(has_log_probabilities),
        text_(response) {
    text_.Add("{" + TextAnswer::Members(head()) + R"(,"choices":[)");
  }

  void BeginChoice(size_t index) override {
    choice_ = {};
    has_tokens_ = false;
    text_.Add((index > 0 ? ",{" : "{") + TextAnswer::Members({{"index", index}}));
  }
  void OnText(AnswerPart part, std::string_view text) override {
    (part == AnswerPart::kAnswer ? choice_.content : choice_.reasoning) += text;
  }
  void OnCall(size_t /*index*/, const std::string& id, const std::string& name) override {
    choice_.calls.push_back(CallJson(id, name, ""));
  }
  void OnArguments(size_t index, std::string_view piece) override {
    choice_.calls[index]["function"]["arguments"].get_ref<std::string&>() += piece;
  }
  void OnToken(TokenLogProbability token) override {
    text_.Add(std::exchange(has_tokens_, true) ? "," : R"(,"logprobs":{"content":[)");
    text_.Add(Written(LogProbabilityJson(token)));
  }

  void EndChoice(const AnswerEnd& end) override {
    Add(end);
    Json message = {{"role", "assistant"}, {"content", choice_.content}};
    if (choice_.content.empty() && !choice_.calls.empty()) message["content"] = nullptr;
    if (!choice_.reasoning.empty()) message["reasoning_content"] = choice_.reasoning;
    if (!choice_.calls.empty()) message["tool_calls"] = choice_.calls;
    message["refusal"] = nullptr;
    Json rest = {{"message", std::move(message)}};
    if (!has_tokens_) {
      rest["logprobs"] = has_log_probabilities_ ? Json{{"content", Json::array()}} : Json();
    }
    rest["finish_reason"] = FinishReasonName(end.reason);
    text_.Add((has_tokens_ ? "]}," : ",") + TextAnswer::Members(rest) + "}");
  }

  void Finish() override {
    text_.Add("]," + TextAnswer::Members(UsageAndTimings(usage())) + "}");
    text_.Finish();
  }

 private:
  const bool has_log_probabilities_;
  TextAnswer text_;
  ChatChoice choice_;
  bool has_tokens_ = false;  // The choice has tokens with log-probabilities.
};

class StreamedChat final : public ChatWriter {
 public:
  StreamedChat(Exchange& exchange, Response& response, bool has_usage)
      : ChatWriter(exchange, response, "chat.completion.chunk"), has_usage_(has_usage) {}

  void BeginChoice(size_t index) override {
    index_ = index;
    has_begun_ = false;
    tokens_ = Json::array();
  }
  void OnText(AnswerPart part, std::string_view text) override {
    SendDelta({{part == AnswerPart::kAnswer ? "content" : "reasoning_content", text}});
  }
  void OnCall(size_t index, const std::string& id, const std::string& name) override {
    Json call = {{"index", index}};
    call.update(CallJson(id, name, ""));
    SendDelta({{"tool_calls", Json::array({call})}});
  }
  void OnArguments(size_t index, std::string_view piece) override {
    const Json call = {{"index", index}, {"function", {{"arguments", piece}}}};
    SendDelta({{"tool_calls", Json::array({call})}});
  }
  void OnToken(TokenLogProbability token) override {
    tokens_.push_back(LogProbabilityJson(token));
    if (tokens_.size() >= kMaxHeldTokens) SendDelta(Json::object());
  }

  void EndChoice(const AnswerEnd& end) override {
    Add(end);
    SendChunk(Json::object(), FinishReasonName(end.reason), &end);
  }

  void Finish() override {
    if (has_usage_) {
      Json chunk = head();
      chunk["choices"] = Json::array();
      chunk.update(UsageAndTimings(usage()));
      response().Stream(chunk);
    }
    response().EndStream();
  }

 private:
  void SendDelta(const Json& delta) { SendChunk(delta, nullptr, nullptr); }

  // The first one of a choice has the role.
  void SendChunk(Json delta, const char* finish_reason, const AnswerEnd* end) {
    if (!std::exchange(has_begun_, true)) {
      Json first = {{"role", "assistant"}, {"content", ""}};
      first.update(delta);
      delta = std::move(first);
    }
    Json choice = {{"index", index_},
                   {"delta", std::move(delta)},
                   {"logprobs", nullptr},
                   {"finish_reason", nullptr}};
    if (finish_reason != nullptr) choice["finish_reason"] = finish_reason;
    if (!tokens_.empty()) choice["logprobs"] = {{"content", std::exchange(tokens_, Json::array())}};
    Json chunk = head();
    chunk["choices"] = Json::array({std::move(choice)});
    if (has_usage_) chunk["usage"] = nullptr;
    if (end != nullptr) chunk["timings"] = TimingsOf(*end);
    response().Stream(chunk);
  }

  const bool has_usage_;
  size_t index_ = 0;
  bool has_begun_ = false;
  Json tokens_ = Json::array();  // Not sent yet.
};

struct ChatBody {
  ChatRequest chat;
  StreamFields stream;
};

ChatBody ReadChatBody(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  return {ReadOpenAiChat(exchange.model().engine, fields), ReadStreamFields(fields)};
}

}  // namespace

void HandleOpenAiChat(Exchange& exchange) {
  ChatBody body = ReadChatBody(exchange);
  Submit(exchange, [&](Response& response) {
    if (body.stream.is_streamed) {
      StreamedChat writer(exchange, response, body.stream.has_usage);
      AnswerChat(exchange, std::move(body.chat), response, writer);
    } else {
      WholeChat writer(exchange, response, body.chat.options.log_probabilities);
      AnswerChat(exchange, std::move(body.chat), response, writer);
    }
  });
}

}  // namespace cria::server
