#include "server/api/chat_request.h"

#include <utility>

#include "core/format.h"
#include "server/api/answer_format.h"
#include "server/api/json_bounds.h"
#include "server/api/messages.h"
#include "server/api/request_error.h"
#include "server/api/sampling_fields.h"
#include "server/api/thinking_fields.h"
#include "server/api/tools.h"
#include "server/api/unsupported_fields.h"

namespace cria::server {

ChatRequest ReadOpenAiChat(const Fields& request) {
  RefuseUnsupportedInChat(request);
  static_cast<void>(request.String("model"));
  ChatRequest read;
  read.messages = ReadMessages(request);
  read.options = ReadAnswerOptions(request);
  read.options.shape = ReadAnswerFormat(request);
  ReadLogProbabilities(request, read.options);
  ReadNumProbabilities(request, read.options);
  read.tools = ReadTools(request);
  if (const auto variables = request.Object("chat_template_kwargs")) {
    if (CountValues(variables->json()) > kMaxVariableValues) {
      RefuseField("chat_template_kwargs", Format("has more than {} values", kMaxVariableValues));
    }
    read.template_variables = variables->json();
    // The request's own tools are the template's.
    if (!read.tools.definitions.empty()) read.template_variables.erase("tools");
  }
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
