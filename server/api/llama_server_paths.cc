// llama-server's /tokenize, /detokenize, /apply-template, /health and /props.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/platform.h"
#include "server/answers/chat_prompt.h"
#include "server/api/log_probability_json.h"
#include "server/api/paths.h"
#include "server/api/sampling_json.h"
#include "server/api/text_answer.h"
#include "server/calls/tool_format.h"
#include "server/requests/chat_request.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

// A text that no context could hold is refused before it takes memory.
constexpr size_t kMaxTokenizedTokens = size_t{1} << 20;
// What the answer is made of may be in memory while other large requests are read.
constexpr size_t kMaxBytesOutOfTurn = size_t{1} << 20;
// A character that is escaped takes this many bytes at most.
constexpr size_t kEscapedBytes = 6;

Json PlanJson(const MemoryPlan& plan) {
  Json lines = Json::array();
  for (const MemoryLine& line : plan.lines) {
    lines.push_back({{"name", line.name()},
                     {"bytes", line.bytes},
                     {"kind", line.kind == MemoryKind::kPrivate ? "private" : "mapped"}});
  }
  return lines;
}

Json DefaultSettings(const ServedModel& model) {
  Json params = SamplerJson({});
  params["n_predict"] = -1;
  return {{"n_ctx", model.engine.decoder().context_tokens()}, {"params", std::move(params)}};
}

struct TokenizeRequest {
  std::string content;
  EncodeOptions options;
  bool with_pieces = false;
};

TokenizeRequest ReadTokenize(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  TokenizeRequest read = {.content = fields.RequiredString("content"),
                          .options = {.add_bos = false,
                                      .parse_special = fields.Bool("parse_special").value_or(true),
                                      .max_tokens = kMaxTokenizedTokens},
                          .with_pieces = fields.Bool("with_pieces").value_or(false)};
  // With special tokens, as the vocabulary says.
  if (fields.Bool("add_special").value_or(false)) read.options.add_bos.reset();
  return read;
}

void WriteTokens(const Tokenizer& tokenizer, std::span<const int32_t> tokens, bool with_pieces,
                 TextAnswer& text) {
  text.Add("{\"tokens\":[");
  for (size_t i = 0; i < tokens.size() && !text.is_gone(); ++i) {
    if (i > 0) text.Add(",");
    if (with_pieces) {
      text.Add(Written({{"id", tokens[i]}, {"piece", ValidText(tokenizer.Piece(tokens[i]))}}));
    } else {
      text.Add(std::to_string(tokens[i]));
    }
  }
  text.Add("]}");
}

std::vector<int32_t> ReadDetokenize(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  const Json* const list = fields.List("tokens");
  if (list == nullptr) RefuseField("tokens", "is missing");
  std::vector<int32_t> tokens;
  tokens.reserve(list->size());
  for (const Json& id : *list) {
    if (!id.is_number_integer()) RefuseField("tokens", "has an item that is not a token id");
    const size_t end = exchange.model().engine.tokenizer().vocab_size();
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= end) {
      RefuseField("tokens",
                  Format("has {}, but ids of this model are 0 to {}", id.dump(), end - 1));
    }
    tokens.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return tokens;
}

ChatRequest ReadTemplateBody(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  return ReadOpenAiChat(exchange.model().engine, Fields(body));
}

Json MemoryJson(uint64_t planned_private_bytes, uint64_t planned_mapped_bytes) {
  const platform::MemoryUsage usage = platform::ReadMemoryUsage();
  return {{"private_bytes", usage.private_bytes},
          {"mapped_bytes", usage.file_mapped_bytes},
          {"peak_bytes", usage.peak_resident_bytes},
          {"planned_private_bytes", planned_private_bytes},
          {"planned_mapped_bytes", planned_mapped_bytes}};
}

Json PropsJson(const Exchange& exchange) {
  const ServedModel& model = exchange.model();
  const ChatTemplate& chat_template = model.engine.chat_template();
  const MemoryPlan& plan = model.engine.memory_plan();
  const std::string_view thinking = ThinkingVariable(chat_template);
  return {{"default_generation_settings", DefaultSettings(model)},
          {"total_slots", model.sessions.size()},
          {"model_alias", model.name},
          {"chat_template", model.engine.file().chat_template_source()},
          {"thinking_variable", thinking.empty() ? Json() : Json(thinking)},
          {"reads_tools", KnowsTools(chat_template)},
          {"build_info", "cria " + exchange.state.options.version},
          {"memory_plan", PlanJson(plan)},
          {"memory", MemoryJson(plan.private_bytes(), plan.mapped_bytes())}};
}

// What is loaded, and what the server has besides.
Json PlanOfServer(const ModelStore& models) {
  Json lines = Json::array();
  const auto add = [&](const std::string& name, const char* kind, uint64_t bytes) {
    lines.push_back({{"name", name}, {"bytes", bytes}, {"kind", kind}});
  };
  platform::MemoryUsage rest = models.planned();
  for (size_t i = 0; i < models.size(); ++i) {
    const platform::MemoryUsage demand = models.figures(i).demand;
    if (demand.private_bytes + demand.file_mapped_bytes == 0) continue;
    add(models.name(i) + ", its weights", "mapped", demand.file_mapped_bytes);
    add(models.name(i) + ", its cache and tables", "private", demand.private_bytes);
    rest.private_bytes -= std::min(rest.private_bytes, demand.private_bytes);
    rest.file_mapped_bytes -= std::min(rest.file_mapped_bytes, demand.file_mapped_bytes);
  }
  add("server", "private", rest.private_bytes);
  add(std::string(MemoryPartName(MemoryPart::kProgramFiles)), "mapped", rest.file_mapped_bytes);
  return lines;
}

// The properties of a server with several models, of which the request names none.
Json PropsOfServer(const ApiState& state) {
  const platform::MemoryUsage planned = state.models.planned();
  Json params = SamplerJson({});
  params["n_predict"] = -1;
  return {{"role", "router"},
          {"default_generation_settings", {{"params", std::move(params)}}},
          {"build_info", "cria " + state.options.version},
          {"memory_plan", PlanOfServer(state.models)},
          {"memory", MemoryJson(planned.private_bytes, planned.file_mapped_bytes)}};
}

}  // namespace

void HandleTokenize(Exchange& exchange) {
  const Tokenizer& tokenizer = exchange.model().engine.tokenizer();
  TokenizeRequest request = ReadTokenize(exchange);
  const auto tokens = ValueOf(tokenizer.Encode(request.content, request.options), "content");
  std::string().swap(request.content);
  size_t max_bytes = 16;
  for (const int32_t id : tokens) {
    max_bytes += 8;
    if (request.with_pieces) max_bytes += 20 + kEscapedBytes * tokenizer.Piece(id).size();
  }
  SendText(exchange, max_bytes, [&](TextAnswer& text) {
    if (exchange.response != nullptr && tokens.size() <= kMaxBytesOutOfTurn / sizeof(int32_t)) {
      exchange.response->EndTurn();
    }
    WriteTokens(tokenizer, tokens, request.with_pieces, text);
  });
}

void HandleDetokenize(Exchange& exchange) {
  const Tokenizer& tokenizer = exchange.model().engine.tokenizer();
  const std::vector<int32_t> tokens = ReadDetokenize(exchange);
  size_t max_bytes = 16;
  for (const int32_t id : tokens) max_bytes += kEscapedBytes * tokenizer.Piece(id).size();
  SendText(exchange, max_bytes, [&](TextAnswer& text) {
    if (exchange.response != nullptr) exchange.response->EndTurn();
    text.Add("{\"content\":\"");
    for (size_t i = 0; i < tokens.size() && !text.is_gone(); ++i) {
      text.AddCharacters(tokenizer.Piece(tokens[i]));
    }
    text.EndString();
    text.Add("\"}");
  });
}

void HandleApplyTemplate(Exchange& exchange) {
  ChatRequest request = ReadTemplateBody(exchange);
  // Rendering may take longer than the HTTP thread should be busy.
  SendText(exchange, /*max_bytes=*/SIZE_MAX, [&](TextAnswer& text) {
    const auto segments = RenderChat(exchange.model().engine.chat_template(),
                                     exchange.model().call_style, std::move(request));
    size_t bytes = 0;
    for (const ChatSegment& segment : segments) bytes += sizeof(segment) + segment.text.size();
    // A template may make much of little.
    if (bytes <= kMaxBytesOutOfTurn) exchange.response->EndTurn();
    text.Add("{\"prompt\":\"");
    for (const ChatSegment& segment : segments) text.AddCharacters(segment.text);
    text.EndString();
    text.Add("\"}");
  });
}

void HandleHealth(Exchange& exchange) { SendNow(exchange, {{"status", "ok"}}); }

void HandleProps(Exchange& exchange) {
  SendNow(exchange, exchange.lease ? PropsJson(exchange) : PropsOfServer(exchange.state));
}

}  // namespace cria::server
