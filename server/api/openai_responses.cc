// POST /v1/responses

#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "server/api/block_writer.h"
#include "server/api/log_probability_json.h"
#include "server/api/paths.h"
#include "server/api/responses_json.h"
#include "server/api/text_answer.h"
#include "server/requests/json_body.h"
#include "server/requests/request_error.h"
#include "server/requests/responses_request.h"
#include "server/requests/unique_id.h"

namespace cria::server {
namespace {

constexpr const char* kInProgress = "in_progress";
constexpr const char* kCompleted = "completed";
constexpr const char* kIncomplete = "incomplete";

// Each block is an item of the output.
class ResponsesWriter : public BlockWriter {
 public:
  ResponsesWriter(Exchange& exchange, Response& response, Json repeated)
      : BlockWriter(exchange, response),
        head_({{"id", "resp_" + UniqueId(24)},
               {"object", "response"},
               {"created_at", std::time(nullptr)},
               {"model", exchange.model().name}}),
        repeated_(std::move(repeated)) {}

  void EndChoice(const AnswerEnd& end) final {
    // Clients expect a message.
    if (num_items_ == 0) GoTo(Block::kText);
    const bool is_cut_off = end.reason == FinishReason::kLength;
    status_ = is_cut_off ? kIncomplete : kCompleted;
    EndLastBlock();
    Json rest = Rest(status_);
    if (is_cut_off) {
      rest["incomplete_details"] = {{"reason", "max_output_tokens"}};
    } else {
      rest["completed_at"] = std::time(nullptr);
    }
    rest["usage"] = ResponsesUsage(end);
    End(rest);
  }

 protected:
  const Json& head() const { return head_; }
  // What follows the head and the output.
  Json Rest(const char* status) const {
    Json rest = Json::parse(
        R"({"status": "", "background": false, "error": null, "incomplete_details": null,
            "usage": null})");
    rest["status"] = status;
    rest.update(repeated_);
    return rest;
  }

  AnswerPart part() const {
    return block() == Block::kText ? AnswerPart::kAnswer : AnswerPart::kReasoning;
  }
  // The item that goes on, its place in the output, its text or its arguments.
  const std::string& item_id() const { return item_id_; }
  size_t item_index() const { return num_items_ - 1; }
  std::string& text() { return text_; }
  const std::string& call_name() const { return call_name_; }
  // What an item that ends has as its status.
  const char* status() const { return status_; }

  Json CallItem(std::string arguments, const char* status) const {
    return ResponsesCallItem(item_id_, call_id_, call_name_, std::move(arguments), status);
  }
  Json TextItem(Json parts, const char* status) const {
    return ResponsesTextItem(part(), item_id_, status, std::move(parts));
  }

 private:
  void BeginText() final {
    BeginItem(part() == AnswerPart::kAnswer ? "msg_" : "rs_");
    OnItem();
  }
  void BeginCall(const std::string& id, const std::string& name) final {
    BeginItem("fc_");
    call_id_ = id;
    call_name_ = name;
    OnItem();
  }
  void BeginItem(const char* prefix) {
    ++num_items_;
    item_id_ = prefix + UniqueId(24);
    text_.clear();
  }
  // An item has begun.
  virtual void OnItem() {}
  virtual void End(const Json& rest) = 0;

  const Json head_;
  const Json repeated_;
  size_t num_items_ = 0;
  std::string item_id_;
  std::string call_id_;
  std::string call_name_;
  std::string text_;
  const char* status_ = kCompleted;
};

// Items are sent when they end; log-probabilities while they come, because they take much memory.
class WholeResponse final : public ResponsesWriter {
 public:
  WholeResponse(Exchange& exchange, Response& response, Json repeated)
      : ResponsesWriter(exchange, response, std::move(repeated)), answer_(response) {
    answer_.Add("{" + TextAnswer::Members(head()) + R"(,"output":[)");
  }

  void OnToken(TokenLogProbability token) override {
    GoTo(Block::kText);
    if (!std::exchange(has_tokens_, true)) {
      answer_.Add(
          Separator() + "{" +
          TextAnswer::Members({{"id", item_id()}, {"type", "message"}, {"role", "assistant"}}) +
          R"(,"content":[{"type":"output_text","annotations":[],"logprobs":[)");
    } else {
      answer_.Add(",");
    }
    answer_.Add(Written(LogProbabilityJson(token)));
  }

 private:
  std::string Separator() const { return item_index() > 0 ? "," : ""; }

  void AddPiece(std::string_view piece) override { text() += piece; }
  void EndBlock() override {
    std::string text = std::exchange(this->text(), {});
    if (std::exchange(has_tokens_, false)) {
      return answer_.Add("]," + TextAnswer::Members({{"text", text}}) + "}]," +
                         TextAnswer::Members({{"status", status()}}) + "}");
    }
    const Json item =
        block() == Block::kCall
            ? CallItem(std::move(text), status())
            : TextItem(Json::array({ResponsesPart(part(), std::move(text))}), status());
    answer_.Add(Separator() + Written(item));
  }
  void End(const Json& rest) override {
    answer_.Add("]," + TextAnswer::Members(rest) + "}");
    answer_.Finish();
  }

  TextAnswer answer_;
  bool has_tokens_ = false;  // Whether log-probabilities of the item that goes on were sent.
};

// The events that end a part or an item repeat its text, and the last one repeats all items, but no
// log-probabilities: these are in the deltas alone.
class StreamedResponse final : public ResponsesWriter {
 public:
  using ResponsesWriter::ResponsesWriter;

  void OnPrompt(size_t /*prompt_tokens*/, size_t /*cached_tokens*/) override {
    for (const char* const type : {"response.created", "response.in_progress"}) {
      SendResponse(type, Rest(kInProgress));
    }
  }
  void OnToken(TokenLogProbability token) override {
    GoTo(Block::kText);
    tokens_.push_back(LogProbabilityJson(token));
    if (tokens_.size() > kMaxHeldTokens) SendTextDelta("");
  }

  // The answer has failed after its beginning.
  void Fail(const RequestError& error) {
    Json rest = Rest("failed");
    rest["error"] = {{"code", error.status() < 500 ? "invalid_prompt" : "server_error"},
                     {"message", error.message()}};
    SendResponse("response.failed", rest);
    response().EndStream();
  }

 private:
  // An event of the whole response.
  void SendResponse(const char* type, const Json& rest) {
    Json event = NewEvent(type);
    Json& all = event["response"] = head();
    all["output"] = output_;
    all.update(rest);
    response().Stream(event);
  }
  Json NewEvent(const char* type) const {
    return {{"type", type}, {"sequence_number", response().num_values()}};
  }
  // An event of the item that goes on.
  Json ItemEvent(const char* type) const {
    Json event = NewEvent(type);
    event["output_index"] = item_index();
    return event;
  }
  Json CallEvent(const char* type) const {
    Json event = ItemEvent(type);
    event["item_id"] = item_id();
    return event;
  }
  // An event of its part, which is the only one.
  Json PartEvent(const char* type) const {
    Json event = CallEvent(type);
    event["content_index"] = 0;
    return event;
  }
  void Send(Json event, const char* field, Json value) {
    event[field] = std::move(value);
    response().Stream(event);
  }

  void OnItem() override {
    const bool is_call = block() == Block::kCall;
    Send(ItemEvent("response.output_item.added"), "item",
         is_call ? CallItem("", kInProgress) : TextItem(Json::array(), kInProgress));
    if (is_call) return;
    Send(PartEvent("response.content_part.added"), "part", ResponsesPart(part(), ""));
  }

  void AddPiece(std::string_view piece) override {
    text() += piece;
    if (block() == Block::kCall) {
      Send(CallEvent("response.function_call_arguments.delta"), "delta", piece);
    } else if (block() == Block::kText) {
      SendTextDelta(piece);
    } else {
      Send(PartEvent("response.reasoning_text.delta"), "delta", piece);
    }
  }
  void SendTextDelta(std::string_view piece) {
    Json event = PartEvent("response.output_text.delta");
    event["logprobs"] = std::exchange(tokens_, Json::array());
    Send(std::move(event), "delta", piece);
  }

  void EndBlock() override {
    if (!tokens_.empty()) SendTextDelta("");
    Json item = block() == Block::kCall ? EndCall() : EndText();
    Send(ItemEvent("response.output_item.done"), "item", item);
    output_.push_back(std::move(item));
  }
  Json EndCall() {
    Json event = CallEvent("response.function_call_arguments.done");
    event["name"] = call_name();
    Send(std::move(event), "arguments", text());
    return CallItem(std::move(text()), status());
  }
  Json EndText() {
    const bool is_answer = block() == Block::kText;
    Json event =
        PartEvent(is_answer ? "response.output_text.done" : "response.reasoning_text.done");
    if (is_answer) event["logprobs"] = Json::array();
    Send(std::move(event), "text", text());
    Json content = ResponsesPart(part(), std::move(text()));
    Send(PartEvent("response.content_part.done"), "part", content);
    return TextItem(Json::array({std::move(content)}), status());
  }

  void End(const Json& rest) override {
    const bool is_whole = status() == std::string_view(kCompleted);
    SendResponse(is_whole ? "response.completed" : "response.incomplete", rest);
    response().EndStream();
  }

  Json output_ = Json::array();  // The items that have ended.
  Json tokens_ = Json::array();  // Log-probabilities that were not sent yet.
};

ResponsesRequest ReadResponsesBody(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  return ReadResponses(exchange.model().engine, Fields(body));
}

void AnswerInEvents(Exchange& exchange, ResponsesRequest request, Response& response) {
  StreamedResponse writer(exchange, response, std::move(request.repeated));
  try {
    AnswerChat(exchange, std::move(request.chat), response, writer);
  } catch (const RequestError& error) {
    if (response.has_begun()) writer.Fail(error);
    throw;
  }
}

}  // namespace

void HandleOpenAiResponses(Exchange& exchange) {
  ResponsesRequest request = ReadResponsesBody(exchange);
  Submit(exchange, [&](Response& response) {
    if (request.is_streamed) return AnswerInEvents(exchange, std::move(request), response);
    WholeResponse writer(exchange, response, std::move(request.repeated));
    AnswerChat(exchange, std::move(request.chat), response, writer);
  });
}

}  // namespace cria::server
