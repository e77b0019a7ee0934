// ollama's /api/tags, /api/show, /api/ps and /api/version.

#include <string>
#include <utility>

#include "core/format.h"
#include "server/api/chat_prompt.h"
#include "server/api/fields.h"
#include "server/api/ollama_json.h"
#include "server/api/paths.h"
#include "server/api/request_error.h"

namespace cria::server {
namespace {

// The version of ollama whose requests and answers the paths follow: the first one with `logprobs`.
// Clients compare it with what they need.
constexpr const char* kOllamaVersion = "0.12.11";

std::string DigestText(const Digest& digest) {
  std::string text;
  for (const auto byte : digest) text += Format("{:02x}", static_cast<unsigned>(byte));
  return text;
}

std::string StartTime(const ApiState& state) {
  return TimeText(std::chrono::system_clock::from_time_t(state.start_time));
}

Json OllamaModel(const Exchange& exchange) {
  const ServedModel& model = exchange.model();
  const ModelFile& file = model.engine.file();
  return {{"name", model.name},
          {"model", model.name},
          {"modified_at", StartTime(exchange.state)},
          {"size", file.size_bytes()},
          {"digest", DigestText(file.digest())},
          {"details", OllamaDetails(model)}};
}

}  // namespace

void HandleOllamaTags(Exchange& exchange) {
  SendNow(exchange, {{"models", Json::array({OllamaModel(exchange)})}});
}

void HandleOllamaPs(Exchange& exchange) {
  const Engine& engine = exchange.model().engine;
  Json model = OllamaModel(exchange);
  // The model is loaded as long as the server runs.
  constexpr std::chrono::hours kFarAway{24 * 365};
  model["expires_at"] = TimeText(std::chrono::system_clock::now() + kFarAway);
  model["size"] = engine.memory_plan().steady_bytes();
  model["size_vram"] = 0;
  model["context_length"] = engine.decoder().context_tokens();
  SendNow(exchange, {{"models", Json::array({std::move(model)})}});
}

void HandleOllamaShow(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  const ServedModel& model = exchange.model();
  // As elsewhere, any name is the one model's.
  static_cast<void>(fields.RequiredString(fields.Has("name") ? "name" : "model"));
  // A rank among several has some of the heads only.
  Result<ModelFile> whole = Fail(ErrorCode::kNotFound, "");
  if (model.engine.decoder().ranks().num_ranks() > 1) {
    whole = ModelFile::Open(model.engine.file().path());
  }
  const ModelConfig& config = whole ? whole->config() : model.engine.file().config();
  const ChatTemplate& chat_template = model.engine.chat_template();
  Json capabilities = {"completion", "tools"};
  if (!ThinkingVariable(chat_template).empty()) capabilities.push_back("thinking");
  const std::string& family = config.architecture;
  SendNow(exchange, {{"modelfile", ""},
                     {"parameters", ""},
                     {"template", model.engine.file().chat_template_source()},
                     {"modified_at", StartTime(exchange.state)},
                     {"details", OllamaDetails(model)},
                     {"model_info",
                      {{"general.architecture", family},
                       {family + ".context_length", config.longest_context()},
                       {family + ".embedding_length", config.hidden_size},
                       {family + ".block_count", config.num_hidden_layers},
                       {family + ".attention.head_count", config.num_attention_heads},
                       {family + ".attention.head_count_kv", config.num_key_value_heads},
                       {family + ".vocab_size", config.vocab_size}}},
                     {"capabilities", std::move(capabilities)}});
}

void HandleOllamaVersion(Exchange& exchange) { SendNow(exchange, {{"version", kOllamaVersion}}); }

}  // namespace cria::server
