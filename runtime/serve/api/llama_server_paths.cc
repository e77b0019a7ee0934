// llama-server's /tokenize, /detokenize, /apply-template, /health and /props.

#include <utility>
#include <vector>

#include "core/platform.h"
#include "serve/api/chat_prompt.h"
#include "serve/api/chat_request.h"
#include "serve/api/log_probability_json.h"
#include "serve/api/paths.h"
#include "serve/api/prompts.h"
#include "serve/api/request_error.h"
#include "serve/api/tool_format.h"
#include "text/detokenizer.h"

namespace cria::serve {
namespace {

// A text that no context could hold is refused before it takes memory.
constexpr size_t kMaxTokenizedTokens = size_t{1} << 20;

Json PlanJson(const MemoryPlan& plan) {
  Json lines = Json::array();
  for (const MemoryLine& line : plan.lines) {
    lines.push_back({{"name", line.name},
                     {"bytes", line.bytes},
                     {"kind", line.kind == MemoryKind::kPrivate ? "private" : "mapped"}});
  }
  return lines;
}

Json DefaultSettings(const ApiState& state) {
  const SamplerOptions sampler;
  return {{"n_ctx", state.engine.decoder().context_tokens()},
          {"params",
           {{"temperature", sampler.temperature},
            {"top_k", sampler.top_k},
            {"top_p", sampler.top_p},
            {"min_p", sampler.min_p},
            {"repeat_penalty", sampler.repeat_penalty},
            {"repeat_last_n", sampler.repeat_last_n},
            {"n_predict", -1}}}};
}

Json TokensJson(const Tokenizer& tokenizer, const std::string& content,
                const EncodeOptions& options, bool with_pieces) {
  Json tokens = Json::array();
  for (const int32_t id : ValueOf(tokenizer.Encode(content, options), "content")) {
    if (with_pieces) {
      tokens.push_back({{"id", id}, {"piece", ValidText(tokenizer.Piece(id))}});
    } else {
      tokens.push_back(id);
    }
  }
  return {{"tokens", std::move(tokens)}};
}

}  // namespace

void HandleTokenize(Exchange& exchange) {
  // More takes longer than the HTTP thread should be busy.
  constexpr size_t kShortBytes = size_t{32} << 10;
  const Json body = ReadBody(exchange.request.body);
  const Fields fields(body);
  std::string content = fields.RequiredString("content");
  const bool add_special = fields.Bool("add_special").value_or(false);
  const bool with_pieces = fields.Bool("with_pieces").value_or(false);
  EncodeOptions options = {.add_bos = false,
                           .parse_special = fields.Bool("parse_special").value_or(true),
                           .max_tokens = kMaxTokenizedTokens};
  // With special tokens, as the vocabulary says.
  if (add_special) options.add_bos.reset();
  const Tokenizer& tokenizer = exchange.state.engine.tokenizer();
  if (content.size() <= kShortBytes) {
    return SendNow(exchange, TokensJson(tokenizer, content, options, with_pieces));
  }
  Submit(exchange,
         [&tokenizer, content = std::move(content), options, with_pieces](Response& response) {
           response.Send(TokensJson(tokenizer, content, options, with_pieces));
         });
}

void HandleDetokenize(Exchange& exchange) {
  const Json body = ReadBody(exchange.request.body);
  const Fields fields(body);
  const Json* const tokens = fields.List("tokens");
  if (tokens == nullptr) RefuseField("tokens", "is missing");
  std::string bytes;
  for (const Json& id : *tokens) {
    if (!id.is_number_integer()) RefuseField("tokens", "has an item that is not a token id");
    const auto number = id.get<int64_t>();
    // Ids that do not exist have no text.
    if (number >= 0 && number <= INT32_MAX) {
      bytes += exchange.state.engine.tokenizer().Piece(static_cast<int32_t>(number));
    }
  }
  SendNow(exchange, {{"content", ValidText(bytes)}});
}

void HandleApplyTemplate(Exchange& exchange) {
  const Json body = ReadBody(exchange.request.body);
  ChatRequest request = ReadOpenAiChat(exchange.state.engine, Fields(body));
  // Rendering may take longer than the HTTP thread should be busy.
  Submit(exchange, [&state = exchange.state, request = std::move(request)](Response& response) {
    response.Send({{"prompt", ChatText(state.engine.chat_template(), request)}});
  });
}

void HandleHealth(Exchange& exchange) { SendNow(exchange, {{"status", "ok"}}); }

void HandleProps(Exchange& exchange) {
  const ApiState& state = exchange.state;
  const ChatTemplate& chat_template = state.engine.chat_template();
  const MemoryPlan& plan = state.engine.memory_plan();
  const platform::MemoryUsage usage = platform::ReadMemoryUsage();
  const std::string_view thinking = ThinkingVariable(chat_template);
  SendNow(exchange, {{"default_generation_settings", DefaultSettings(state)},
                     {"total_slots", state.sessions.size()},
                     {"model_alias", state.model_name},
                     {"chat_template", state.engine.file().chat_template_source()},
                     {"thinking_variable", thinking.empty() ? Json() : Json(thinking)},
                     {"reads_tools", KnowsTools(chat_template)},
                     {"build_info", "cria " + state.options.version},
                     {"memory_plan", PlanJson(plan)},
                     {"memory",
                      {{"private_bytes", usage.private_bytes},
                       {"mapped_bytes", usage.file_mapped_bytes},
                       {"peak_bytes", usage.peak_resident_bytes},
                       {"planned_private_bytes", plan.private_bytes()},
                       {"planned_mapped_bytes", plan.mapped_bytes()}}}});
}

}  // namespace cria::serve
