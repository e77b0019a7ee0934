// Any bytes as the body of a request: reading it must end in a request or in a refusal with a
// status of 400, whatever API it is for. Also any text as what a model writes with tools.
// corpus/api/ has bodies to begin with; their first byte chooses what reads them, and the last byte
// of a model's text chooses the form of its calls.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "server/api/model_request.h"
#include "server/calls/call_finder.h"
#include "server/calls/call_reader.h"
#include "server/calls/harmony.h"
#include "server/calls/tool_format.h"
#include "server/requests/answer_format.h"
#include "server/requests/anthropic_request.h"
#include "server/requests/chat_request.h"
#include "server/requests/messages.h"
#include "server/requests/prompts.h"
#include "server/requests/request_error.h"
#include "server/requests/responses_request.h"
#include "server/requests/sampling_fields.h"

namespace cria::server {
namespace {

ToolUse FuzzTools() {
  ToolUse use;
  use.choice = ToolUse::Choice::kAuto;
  use.tools = {{.name = "add", .parameters = kAnyObjectSchema},
               {.name = "time", .parameters = kAnyObjectSchema}};
  return use;
}

// What is handed on can be written and read again.
void CheckRequest(ChatRequest& request) {
  for (const ChatMessage& message : request.messages) {
    if (!message.fields.empty()) ReadJsonText(message.fields, "a message");
  }
  if (request.tools.may_call()) {
    ReadJsonText(CallSchema(request.tools, "arguments"), "a schema");
    ReadJsonText(CallListSchema(request.tools, "arguments"), "a schema");
  }
  DescribeTools(request.tools, request.messages);
}

void ReadChat(std::string_view body) {
  const Json json = ReadBody(body);
  const Fields fields(json);
  ChatRequest request = ReadOpenAiChat(fields);
  ReadStreamFields(fields);
  CheckRequest(request);
}

void ReadResponse(std::string_view body) {
  const Json json = ReadBody(body);
  ResponsesRequest request = ReadResponses(Fields(json));
  ReadJsonText(Written(request.repeated), "what an answer repeats");
  CheckRequest(request.chat);
}

// The name of the model, before the rest is read, and the same text as a query.
void ReadModel(std::string_view body) {
  QueryValue(body, "model");
  const ModelRequest request = ReadModelRequest(body);
  if (request.model && request.model->size() > body.size()) std::abort();
}

void ReadTurns(std::string_view body) {
  const Json json = ReadBody(body);
  for (const ChatMessage& message : ReadAnthropicTurns(Fields(json))) {
    if (!message.fields.empty()) ReadJsonText(message.fields, "a message");
  }
}

void ReadCompletion(std::string_view body) {
  const Json json = ReadBody(body);
  const Fields fields(json);
  ReadPrompts(fields, /*vocab_size=*/1000);
  ReadAnswerOptions(fields);
  ReadAnswerFormat(fields);
}

// What is told is the whole text if no call is found; where arguments are found, they begin.
void FindCalls(const CallFinder::Options& options, std::string_view text) {
  const ToolUse tools = FuzzTools();
  std::string told;
  size_t num_calls = 0;
  CallFinder finder(tools, options,
                    {.on_text = [&](std::string_view part) { told += part; },
                     .on_call =
                         [&](const ToolCall& call) {
                           ReadJsonText(call.arguments, "the arguments of a call");
                           ++num_calls;
                           return !options.stops_at_arguments || num_calls % 2 == 0;
                         }});
  size_t section = 0;  // Where it begins in the text.
  for (size_t taken = 0; taken < text.size();) {
    const std::string_view piece =
        text.substr(taken, 1 + static_cast<unsigned char>(text[taken]) % 5);
    finder.Append(piece);
    taken += piece.size();
    if (!finder.is_found()) continue;
    ++num_calls;
    const size_t begin = section + finder.begin();
    const bool is_in_text =
        finder.found().form == nullptr ? begin < taken && text[begin] == '{' : begin <= taken;
    if (!is_in_text || (finder.name().empty() && !finder.found().is_before_name)) std::abort();
    section = taken;
    if (finder.found().is_before_name) {
      finder.GoToCallEnd();
    } else {
      finder.GoToArgumentsEnd();
    }
  }
  finder.Flush();
  if (num_calls == 0 && told != text) std::abort();
}

// Headers of Harmony may be left out; nothing is added.
void ReadMessages(std::string_view text) {
  size_t bytes = 0;
  HarmonyText harmony([&](AnswerPart, std::string_view part) { bytes += part.size(); });
  for (size_t i = 0; i < text.size(); i += 3) harmony.Append(text.substr(i, 3));
  harmony.Flush();
  if (bytes > text.size()) std::abort();
}

void ReadModelText(std::string_view text) {
  ReadMessages(text);
  for (const bool takes_bare : {true, false}) {
    for (const bool stops : {true, false}) {
      FindCalls({.takes_bare = takes_bare, .stops_at_arguments = stops}, text);
      // Modulo the number of forms, the last byte is the index of one.
      const auto last = static_cast<unsigned char>(text.empty() ? 0 : text.back());
      const CallForm& form = CallForms()[last % CallForms().size()];
      FindCalls({.takes_bare = takes_bare, .stops_at_arguments = stops, .form = &form}, text);
    }
  }
  size_t bytes = 0;
  CallReader reader({.on_name = [&](std::string_view name) { bytes += name.size(); },
                     .on_arguments = [&](std::string_view piece) { bytes += piece.size(); }});
  reader.Begin(CallPart::Content::kCalls);
  for (size_t i = 0; i < text.size(); i += 3) reader.Append(text.substr(i, 3));
  reader.End();
  if (bytes > text.size()) std::abort();
}

}  // namespace
}  // namespace cria::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cria::server;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 'c':
        ReadChat(text);
        break;
      case 'a':
        ReadTurns(text);
        break;
      case 'r':
        ReadResponse(text);
        break;
      case 'm':
        ReadModel(text);
        break;
      case 'p':
        ReadCompletion(text);
        break;
      default:
        ReadModelText(text);
        break;
    }
  } catch (const RequestError& error) {
    if (error.status() != 400 || error.message().empty()) std::abort();
    // The error itself is valid JSON.
    if (!nlohmann::json::accept(ErrorBody(error))) std::abort();
  }
  return 0;
}
