// GET /v1/models

#include "server/api/paths.h"

namespace cria::server {
namespace {

Json ModelJson(const Exchange& exchange) {
  const ServedModel& model = exchange.model();
  const ModelConfig& config = model.engine.file().config();
  return {{"id", model.name},
          {"object", "model"},
          {"created", exchange.state.start_time},
          {"owned_by", "cria"},
          {"meta",
           {{"vocab_size", config.vocab_size},
            {"n_ctx", model.engine.decoder().context_tokens()},
            {"n_ctx_train", config.longest_context()},
            {"size", model.engine.file().size_bytes()}}}};
}

}  // namespace

void HandleOpenAiModels(Exchange& exchange) {
  SendNow(exchange, {{"object", "list"}, {"data", Json::array({ModelJson(exchange)})}});
}

void HandleOpenAiModel(Exchange& exchange) {
  if (exchange.name != exchange.model().name) {
    throw RequestError(404,
                       "there is no model \"" + exchange.name + "\"; this server has \"" +
                           exchange.model().name + "\"",
                       "model", "model_not_found");
  }
  SendNow(exchange, ModelJson(exchange));
}

}  // namespace cria::server
