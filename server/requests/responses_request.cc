#include "server/requests/responses_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"
#include "server/requests/answer_format.h"
#include "server/requests/chat_request.h"
#include "server/requests/request_error.h"
#include "server/requests/responses_items.h"
#include "server/requests/sampling_fields.h"
#include "server/requests/thinking_fields.h"
#include "server/requests/tools.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

constexpr std::string_view kLogProbabilities = "message.output_text.logprobs";
// What tools of a server would give, and encrypted reasoning: neither is ever there.
constexpr std::array<std::string_view, 7> kAbsent = {"file_search_call.results",
                                                     "web_search_call.results",
                                                     "web_search_call.action.sources",
                                                     "message.input_image.image_url",
                                                     "computer_call_output.output.image_url",
                                                     "code_interpreter_call.outputs",
                                                     "reasoning.encrypted_content"};

void ReadInclude(const Fields& request, AnswerOptions& options) {
  constexpr size_t kMaxNames = 16;
  for (const std::string& name : request.Strings("include", kMaxNames)) {
    if (name == kLogProbabilities) {
      options.log_probabilities = true;
    } else if (!std::ranges::contains(kAbsent, name)) {
      RefuseField("include", Format("has \"{}\", which is not known", name));
    }
  }
  const auto top = request.Integer("top_logprobs", 0, AnswerOptions::kMaxTopLogProbabilities);
  if (top && *top > 0 && !options.log_probabilities) {
    RefuseField("top_logprobs", Format("needs include to have \"{}\"", kLogProbabilities));
  }
  options.top_log_probabilities = static_cast<size_t>(top.value_or(0));
}

// Clients read them as texts.
void CheckMetadata(const Fields& request) {
  const std::optional<Fields> metadata = request.Object("metadata");
  if (!metadata) return;
  for (const auto& [name, value] : metadata->json().items()) {
    if (!value.is_string()) RefuseField(metadata->PathOf(name), "is not a string");
  }
}

// Takes the value's bytes off; returns false if there are not so many. Writing a large value to
// count them would take memory that is not planned.
bool TakeBytes(const Json& value, size_t& left) {
  constexpr size_t kOtherBytes = 8;  // A value that is no text takes so many, about.
  const auto take = [&left](size_t bytes) {
    const bool fits = bytes <= left;
    if (fits) left -= bytes;
    return fits;
  };
  if (!take(value.is_string() ? value.get_ref<const std::string&>().size() : kOtherBytes)) {
    return false;
  }
  if (!value.is_structured()) return true;
  for (const auto& [name, item] : value.items()) {
    if (!take(value.is_object() ? name.size() : 0) || !TakeBytes(item, left)) return false;
  }
  return true;
}

Json Bounded(const Json* value, const Json& otherwise = nullptr) {
  size_t left = kMaxRepeatedBytes;
  return value != nullptr && TakeBytes(*value, left) ? *value : otherwise;
}

Json RepeatedTools(const Fields& request) {
  Json tools = Bounded(request.Find("tools"), Json::array());
  for (Json& tool : tools) tool["type"] = "function";
  return tools;
}

// A number as it was sent, or the default without digits that a float does not have.
Json NumberSent(const Fields& request, std::string_view name, float used) {
  constexpr double kDigits = 1e6;
  const Json* const sent = request.Find(name);
  return sent != nullptr ? *sent : Json(std::round(double{used} * kDigits) / kDigits);
}

// What is the same in all answers, and the defaults.
constexpr const char* kRepeated = R"({"max_output_tokens": null, "max_tool_calls": null,
    "parallel_tool_calls": true, "previous_response_id": null,
    "reasoning": {"effort": null, "summary": null}, "service_tier": "default", "store": false,
    "text": {"format": {"type": "text"}, "verbosity": "medium"}, "truncation": "disabled"})";

Json Repeat(const Fields& request, const ChatRequest& read) {
  const SamplerOptions& sampler = read.options.sampler;
  Json repeated = Json::parse(kRepeated);
  repeated["instructions"] = Bounded(request.Find("instructions"));
  repeated["metadata"] = Bounded(request.Find("metadata"), Json::object());
  repeated["temperature"] = NumberSent(request, "temperature", sampler.temperature);
  repeated["tool_choice"] = Bounded(request.Find("tool_choice"), "auto");
  repeated["tools"] = RepeatedTools(request);
  repeated["top_logprobs"] = read.options.top_log_probabilities;
  repeated["top_p"] = NumberSent(request, "top_p", sampler.top_p);
  repeated["user"] = Bounded(request.Find("user"));
  for (const char* const name : {"max_output_tokens", "parallel_tool_calls"}) {
    if (const Json* const value = request.Find(name)) repeated[name] = *value;
  }
  const auto repeat = [&](const char* object, const char* name) {
    const std::optional<Fields> fields = request.Object(object);
    const Json* const value = fields ? fields->Find(name) : nullptr;
    if (value != nullptr) repeated[object][name] = Bounded(value);
  };
  repeat("reasoning", "effort");
  repeat("text", "format");
  return repeated;
}

}  // namespace

ResponsesRequest ReadResponses(const Fields& request) {
  RefuseUnsupportedInResponses(request);
  static_cast<void>(request.String("model"));
  // Nothing is stored, and clients ask for it unless they are told otherwise.
  static_cast<void>(request.Bool("store"));
  CheckMetadata(request);
  ResponsesRequest read;
  ChatRequest& chat = read.chat;
  chat.messages = ReadResponsesInput(request);
  chat.options.sampler = ReadSampler(request);
  chat.options.stop = ReadStop(request);
  chat.options.max_tokens = ReadMaxTokens(request, "max_output_tokens");
  chat.options.ignore_eos = request.Bool("ignore_eos").value_or(false);
  chat.options.shape = ReadResponsesFormat(request);
  ReadReasoningBudget(request, chat.options);
  ReadInclude(request, chat.options);
  chat.tools = ReadTools(request, ToolForm::kFlat);
  ReadTemplateVariables(request, chat);
  read.is_streamed = ReadStreamFields(request).is_streamed;
  read.repeated = Repeat(request, chat);
  return read;
}

ResponsesRequest ReadResponses(const Engine& engine, const Fields& request) {
  ResponsesRequest read = ReadResponses(request);
  ReadThinking(engine.chat_template(), request, read.chat);
  return read;
}

}  // namespace cria::server
