// POST /v1/messages and /v1/messages/count_tokens

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/answers/chat_prompt.h"
#include "server/api/block_writer.h"
#include "server/api/paths.h"
#include "server/api/text_answer.h"
#include "server/requests/anthropic_request.h"
#include "server/requests/json_body.h"
#include "server/requests/request_error.h"
#include "server/requests/unique_id.h"

namespace cria::server {
namespace {

const char* StopReasonName(const AnswerEnd& end) {
  if (end.reason == FinishReason::kToolCalls) return "tool_use";
  if (end.reason == FinishReason::kLength) return "max_tokens";
  return end.stop_string.empty() ? "end_turn" : "stop_sequence";
}

// input_tokens are those that were not cached.
Json UsageOf(size_t prompt_tokens, size_t cached_tokens, size_t completion_tokens) {
  return {{"input_tokens", prompt_tokens - cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached_tokens},
          {"output_tokens", completion_tokens}};
}

class MessageWriter : public BlockWriter {
 public:
  MessageWriter(Exchange& exchange, Response& response)
      : BlockWriter(exchange, response),
        head_({{"id", "msg_" + UniqueId(24)},
               {"type", "message"},
               {"role", "assistant"},
               {"model", exchange.model().name}}) {}

 protected:
  const Json& head() const { return head_; }
  // The type of the block that goes on, and the name of its field with the text.
  const char* text_type() const { return block() == Block::kText ? "text" : "thinking"; }

 private:
  void BeginText() final {
    const std::string type = text_type();
    Json block = {{"type", type}, {type, ""}};
    if (type == "thinking") block["signature"] = "";
    BeginBlock(std::move(block));
  }
  void BeginCall(const std::string& id, const std::string& name) final {
    BeginBlock({{"type", "tool_use"}, {"id", id}, {"name", name}, {"input", Json::object()}});
  }
  virtual void BeginBlock(Json block) = 0;

  Json head_;
};

class WholeMessage final : public MessageWriter {
 public:
  using MessageWriter::MessageWriter;

  void EndChoice(const AnswerEnd& end) override {
    EndLastBlock();
    TextAnswer text(response());
    text.Add("{" + TextAnswer::Members(head()) + R"(,"content":[)");
    text.Add(blocks_);
    text.Add(
        "]," +
        TextAnswer::Members(
            {{"stop_reason", StopReasonName(end)},
             {"stop_sequence", end.stop_string.empty() ? Json() : Json(end.stop_string)},
             {"usage", UsageOf(end.prompt_tokens, end.cached_tokens, end.completion_tokens)}}) +
        "}");
    text.Finish();
  }

 private:
  void BeginBlock(Json block) override { block_ = std::move(block); }
  void AddPiece(std::string_view piece) override { text_ += piece; }
  void EndBlock() override {
    if (block() == Block::kCall) {
      SetInput();
    } else {
      block_[text_type()] = std::move(text_);
    }
    text_.clear();
    if (!blocks_.empty()) blocks_ += ',';
    blocks_ += Written(block_);
  }

  // Calls that were cut off have no whole arguments, and then the input is an empty object.
  void SetInput() {
    try {
      Json input = ReadJsonText(text_, "a call");
      if (input.is_object()) block_["input"] = std::move(input);
    } catch (const RequestError&) {
      block_["input"] = Json::object();
    }
  }

  Json block_;          // The one that goes on, without its text.
  std::string text_;    // Its text.
  std::string blocks_;  // The blocks before it, as JSON has them between brackets.
};

class StreamedMessage final : public MessageWriter {
 public:
  using MessageWriter::MessageWriter;

  void OnPrompt(size_t prompt_tokens, size_t cached_tokens) override {
    Json message = head();
    message["content"] = Json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = UsageOf(prompt_tokens, cached_tokens, 0);
    response().Stream({{"type", "message_start"}, {"message", std::move(message)}});
    response().Stream({{"type", "ping"}});
  }

  void EndChoice(const AnswerEnd& end) override {
    EndLastBlock();
    response().Stream(
        {{"type", "message_delta"},
         {"delta",
          {{"stop_reason", StopReasonName(end)},
           {"stop_sequence", end.stop_string.empty() ? Json() : Json(end.stop_string)}}},
         {"usage", UsageOf(end.prompt_tokens, end.cached_tokens, end.completion_tokens)}});
    response().Stream({{"type", "message_stop"}});
    response().EndStream();
  }

 private:
  void BeginBlock(Json block) override {
    response().Stream(
        {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(block)}});
  }
  void AddPiece(std::string_view piece) override {
    const std::string type = block() == Block::kCall ? "input_json" : text_type();
    const std::string field = block() == Block::kCall ? "partial_json" : type;
    response().Stream({{"type", "content_block_delta"},
                       {"index", index_},
                       {"delta", {{"type", type + "_delta"}, {field, piece}}}});
  }
  void EndBlock() override {
    response().Stream({{"type", "content_block_stop"}, {"index", index_++}});
  }

  size_t index_ = 0;
};

struct MessagesBody {
  ChatRequest chat;
  bool is_streamed = false;
};

MessagesBody ReadMessagesBody(Exchange& exchange, bool generates) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  return {ReadAnthropicMessages(exchange.model().engine, fields, generates),
          fields.Bool("stream").value_or(false)};
}

}  // namespace

void HandleAnthropicMessages(Exchange& exchange) {
  MessagesBody body = ReadMessagesBody(exchange, /*generates=*/true);
  Submit(exchange, [&](Response& response) {
    if (body.is_streamed) {
      StreamedMessage writer(exchange, response);
      AnswerChat(exchange, std::move(body.chat), response, writer);
    } else {
      WholeMessage writer(exchange, response);
      AnswerChat(exchange, std::move(body.chat), response, writer);
    }
  });
}

void HandleAnthropicCount(Exchange& exchange) {
  MessagesBody body = ReadMessagesBody(exchange, /*generates=*/false);
  // Rendering may take longer than the HTTP thread should be busy.
  Submit(exchange, [&](Response& response) {
    const ServedModel& model = exchange.model();
    const auto segments =
        RenderChat(model.engine.chat_template(), model.call_style, std::move(body.chat));
    const auto tokens =
        ValueOf(ChatTemplate::EncodeRendered(model.engine.tokenizer(), segments), "messages");
    response.Send({{"input_tokens", tokens.size()}});
  });
}

}  // namespace cria::server
