#include "server/requests/chat_request.h"

#include <utility>

#include "core/format.h"
#include "messages/json_text.h"
#include "server/requests/answer_format.h"
#include "server/requests/json_bounds.h"
#include "server/requests/messages.h"
#include "server/requests/request_error.h"
#include "server/requests/sampling_fields.h"
#include "server/requests/thinking_fields.h"
#include "server/requests/tools.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

// vLLM's `continue_final_message`, together with `add_generation_prompt`, which it contradicts.
bool ReadContinuation(const Fields& request) {
  constexpr const char* kPrompt = "add_generation_prompt";
  const bool continues = request.Bool("continue_final_message").value_or(false);
  const bool begins = request.Bool(kPrompt).value_or(!continues);
  if (continues && begins) {
    RefuseField(kPrompt, "is true, but continue_final_message is, too");
  }
  if (!continues && !begins) {
    RefuseField(kPrompt, "is not supported unless it is true, or continue_final_message is",
                "unsupported_parameter");
  }
  return continues;
}

}  // namespace

void CheckContinues(const ChatMessage& last, const std::string& path) {
  if (last.role != "assistant") {
    RefuseField(path + ".role", "is not \"assistant\", so that there is no answer to go on with");
  }
  if (last.content.empty() || last.fields.contains("\"tool_calls\"")) {
    RefuseField(path + ".content", "has no text that an answer could go on with");
  }
}

void ReadTemplateVariables(const Fields& request, ChatRequest& read) {
  const auto variables = request.Object("chat_template_kwargs");
  if (!variables) return;
  if (CountValues(variables->json()) > kMaxVariableValues) {
    RefuseField("chat_template_kwargs", Format("has more than {} values", kMaxVariableValues));
  }
  read.template_variables = variables->json();
  // The request's own tools are the template's.
  if (!read.tools.definitions.empty()) read.template_variables.erase("tools");
}

ChatRequest ReadOpenAiChat(const Fields& request) {
  RefuseUnsupportedInChat(request);
  static_cast<void>(request.String("model"));
  ChatRequest read;
  read.messages = ReadMessages(request);
  read.continues_last = ReadContinuation(request);
  if (read.continues_last) {
    CheckContinues(read.messages.back(), Format("messages[{}]", read.messages.size() - 1));
  }
  read.options = ReadAnswerOptions(request);
  read.options.shape = ReadAnswerFormat(request);
  ReadReasoningBudget(request, read.options);
  ReadLogProbabilities(request, read.options);
  ReadNumProbabilities(request, read.options);
  read.tools = ReadTools(request);
  ReadTemplateVariables(request, read);
  return read;
}

ChatRequest ReadOpenAiChat(const Engine& engine, const Fields& request) {
  ChatRequest read = ReadOpenAiChat(request);
  ReadThinking(engine.chat_template(), request, read);
  return read;
}

StreamFields ReadStreamFields(const Fields& request) {
  StreamFields stream = {.is_streamed = request.Bool("stream").value_or(false)};
  if (const auto options = request.Object("stream_options")) {
    if (!stream.is_streamed) RefuseField("stream_options", "needs stream to be true");
    options->Unsupported("continuous_usage_stats", {false});
    stream.has_usage = options->Bool("include_usage").value_or(false);
  }
  return stream;
}

}  // namespace cria::server
