// ollama's /api/tags, /api/show, /api/ps and /api/version.

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "core/format.h"
#include "server/answers/chat_prompt.h"
#include "server/api/model_choice.h"
#include "server/api/ollama_json.h"
#include "server/api/paths.h"
#include "server/requests/fields.h"
#include "server/requests/request_error.h"

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

Json OllamaModel(const ApiState& state, size_t index) {
  const ModelDescription& model = state.source(index).description();
  const std::string& name = state.models.name(index);
  return {{"name", name},
          {"model", name},
          {"modified_at", StartTime(state)},
          {"size", model.size_bytes},
          {"digest", DigestText(model.digest)},
          {"details", OllamaDetails(model.architecture)}};
}

// A time of the steady clock; absent: so late that it never comes.
std::string ExpiryText(const std::optional<ModelStore::Clock::time_point>& expiry) {
  constexpr std::chrono::hours kFarAway{24 * 365};
  const auto left = expiry ? *expiry - ModelStore::Clock::now() : kFarAway;
  return TimeText(std::chrono::system_clock::now() +
                  std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
}

}  // namespace

void HandleOllamaTags(Exchange& exchange) {
  Json models = Json::array();
  for (size_t i = 0; i < exchange.state.models.size(); ++i) {
    models.push_back(OllamaModel(exchange.state, i));
  }
  SendNow(exchange, {{"models", std::move(models)}});
}

void HandleOllamaPs(Exchange& exchange) {
  const ApiState& state = exchange.state;
  Json models = Json::array();
  for (size_t i = 0; i < state.models.size(); ++i) {
    const ModelStore::Figures figures = state.models.figures(i);
    if (figures.state != ModelStore::State::kLoaded) continue;
    Json model = OllamaModel(state, i);
    model["expires_at"] = ExpiryText(figures.expiry);
    model["size"] = figures.demand.private_bytes + figures.demand.file_mapped_bytes;
    model["size_vram"] = 0;
    model["context_length"] = state.source(i).description().context_tokens;
    models.push_back(std::move(model));
  }
  SendNow(exchange, {{"models", std::move(models)}});
}

void HandleOllamaShow(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  const ApiState& state = exchange.state;
  const std::string name = fields.RequiredString(fields.Has("name") ? "name" : "model");
  // As elsewhere, any name is the one model's.
  const size_t index = state.has_one_model() ? 0 : IndexOfModel(state, name);
  // The file has more than a rank among several, which has some of the heads only.
  const Result<ModelFile> file = ModelFile::Open(state.source(index).description().path);
  if (!file) throw RequestError(500, file.error().message(), "model", "model_not_loaded");
  const ModelConfig& config = file->config();
  const ChatTemplate chat_template(file->chat_template_source(), file->vocabulary(), file->path());
  Json capabilities = {"completion", "tools"};
  if (!ThinkingVariable(chat_template).empty()) capabilities.push_back("thinking");
  const std::string& family = config.architecture;
  SendNow(exchange, {{"modelfile", ""},
                     {"parameters", ""},
                     {"template", file->chat_template_source()},
                     {"modified_at", StartTime(state)},
                     {"details", OllamaDetails(family)},
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
