// GET /v1/models

#include "server/api/paths.h"

namespace cria::server {
namespace {

Json ModelJson(const ApiState& state) {
  const ModelConfig& config = state.engine.file().config();
  return {{"id", state.model_name},
          {"object", "model"},
          {"created", state.start_time},
          {"owned_by", "cria"},
          {"meta",
           {{"vocab_size", config.vocab_size},
            {"n_ctx", state.engine.decoder().context_tokens()},
            {"n_ctx_train", config.longest_context()},
            {"size", state.engine.file().size_bytes()}}}};
}

}  // namespace

void HandleOpenAiModels(Exchange& exchange) {
  SendNow(exchange, {{"object", "list"}, {"data", Json::array({ModelJson(exchange.state)})}});
}

void HandleOpenAiModel(Exchange& exchange) {
  if (exchange.name != exchange.state.model_name) {
    throw RequestError(404,
                       "there is no model \"" + exchange.name + "\"; this server has \"" +
                           exchange.state.model_name + "\"",
                       "model", "model_not_found");
  }
  SendNow(exchange, ModelJson(exchange.state));
}

}  // namespace cria::server
