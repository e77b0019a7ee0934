#include "serve/api/chat_request.h"

#include <utility>

#include "serve/api/messages.h"
#include "serve/api/request_error.h"
#include "serve/api/sampling_fields.h"
#include "serve/api/tools.h"

namespace cria::serve {
namespace {

// Fields that would change the answer and that nothing here implements. Others that are unknown,
// such as user, metadata, store and service_tier, change nothing.
void RefuseUnsupported(const Fields& request) {
  request.Unsupported("functions", {Json::array()}, "is not supported; use tools");
  request.Unsupported("function_call", {"none", "auto"}, "is not supported; use tool_choice");
  request.Unsupported("modalities", {Json::array({"text"})},
                      "has more than text, which is all that this model writes");
  request.Unsupported("audio");
  request.Unsupported("prediction");
  request.Unsupported("web_search_options");
  request.Unsupported("verbosity", {"medium"});
}

void ReadLogProbabilities(const Fields& request, AnswerOptions& options) {
  options.log_probabilities = request.Bool("logprobs").value_or(false);
  const auto top = request.Integer("top_logprobs", 0, AnswerOptions::kMaxTopLogProbabilities);
  if (top && *top > 0 && !options.log_probabilities) {
    RefuseField("top_logprobs", "needs logprobs to be true");
  }
  options.top_log_probabilities = static_cast<size_t>(top.value_or(0));
}

}  // namespace

ChatRequest ReadOpenAiChat(const Fields& request) {
  RefuseUnsupported(request);
  static_cast<void>(request.String("model"));
  ChatRequest read;
  read.messages = ReadMessages(request);
  read.options = ReadAnswerOptions(request);
  read.options.shape = ReadResponseFormat(request);
  ReadLogProbabilities(request, read.options);
  read.tools = ReadTools(request);
  if (const auto variables = request.Object("chat_template_kwargs")) {
    read.template_variables = variables->json();
  }
  return read;
}

StreamFields ReadStreamFields(const Fields& request) {
  StreamFields stream = {.is_streamed = request.Bool("stream").value_or(false)};
  if (const auto options = request.Object("stream_options")) {
    if (!stream.is_streamed) RefuseField("stream_options", "needs stream to be true");
    stream.has_usage = options->Bool("include_usage").value_or(false);
  }
  return stream;
}

}  // namespace cria::serve
