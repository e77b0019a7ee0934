#include "server/api/responses_json.h"

#include <utility>

namespace cria::server {

Json ResponsesPart(AnswerPart part, std::string text) {
  if (part == AnswerPart::kReasoning) {
    return {{"type", "reasoning_text"}, {"text", std::move(text)}};
  }
  return {{"type", "output_text"},
          {"annotations", Json::array()},
          {"logprobs", Json::array()},
          {"text", std::move(text)}};
}

Json ResponsesTextItem(AnswerPart part, const std::string& id, const char* status, Json parts) {
  Json item = {{"id", id}};
  if (part == AnswerPart::kReasoning) {
    item["type"] = "reasoning";
    item["summary"] = Json::array();
  } else {
    item["type"] = "message";
    item["role"] = "assistant";
  }
  item["status"] = status;
  item["content"] = std::move(parts);
  return item;
}

Json ResponsesCallItem(const std::string& id, const std::string& call_id, const std::string& name,
                       std::string arguments, const char* status) {
  return {{"id", id},         {"type", "function_call"},
          {"status", status}, {"call_id", call_id},
          {"name", name},     {"arguments", std::move(arguments)}};
}

Json ResponsesUsage(const AnswerEnd& end) {
  return {
      {"input_tokens", end.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", end.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", end.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", end.reasoning_tokens}}},
      {"total_tokens", end.prompt_tokens + end.completion_tokens}};
}

}  // namespace cria::server
