#include "server/api/ollama_writer.h"

#include <utility>

#include "server/api/log_probability_json.h"
#include "server/api/ollama_json.h"

namespace cria::server {
namespace {

int64_t Nanoseconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void OllamaWriter::OnToken(TokenLogProbability token) {
  if (is_streamed_) {
    tokens_.push_back(LogProbabilityJson(token));
    if (tokens_.size() >= kMaxHeldTokens) SendTokens();
    return;
  }
  text_.Add(std::exchange(has_tokens_, true)
                ? ","
                : "{" + TextAnswer::Members(OllamaHead(model().name)) + R"(,"logprobs":[)");
  text_.Add(Written(LogProbabilityJson(token)));
}

Json OllamaWriter::Value(const Json& content) {
  Json value = has_tokens_ ? Json::object() : OllamaHead(model().name);
  value.update(content);
  if (!tokens_.empty()) value["logprobs"] = std::exchange(tokens_, Json::array());
  return value;
}

void OllamaWriter::SendPart(const Json& content) {
  Json value = Value(content);
  value["done"] = false;
  response().Stream(value);
}

void OllamaWriter::SendEnd(const Json& content, const AnswerEnd& end) {
  Json value = Value(content);
  value["done"] = true;
  value["done_reason"] = end.reason == FinishReason::kLength ? "length" : "stop";
  value["total_duration"] = Nanoseconds(std::chrono::steady_clock::now() - begin_);
  value["load_duration"] = 0;
  value["prompt_eval_count"] = end.prompt_tokens;
  value["prompt_eval_duration"] = Nanoseconds(end.prompt_time);
  value["eval_count"] = end.completion_tokens;
  value["eval_duration"] = Nanoseconds(end.completion_time);
  if (!is_streamed_) {
    text_.Add((has_tokens_ ? "]," : "{") + TextAnswer::Members(value) + "}");
    return text_.Finish();
  }
  response().Stream(value);
  response().EndStream();
}

}  // namespace cria::server
