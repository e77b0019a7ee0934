// GET /v1/models, and llama-server's POST /models/load and /models/unload

#include "server/api/model_choice.h"
#include "server/api/paths.h"
#include "server/requests/fields.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

const char* StateName(ModelStore::State state) {
  switch (state) {
    case ModelStore::State::kUnloaded:
      break;
    case ModelStore::State::kLoading:
      return "loading";
    case ModelStore::State::kLoaded:
      return "loaded";
    case ModelStore::State::kUnloading:
      return "unloading";
  }
  return "unloaded";
}

Json ModelJson(const ApiState& state, size_t index) {
  const ModelDescription& model = state.source(index).description();
  const ModelStore::Figures figures = state.models.figures(index);
  Json status = {{"value", StateName(figures.state)}};
  if (!figures.error.empty()) {
    status["failed"] = true;
    status["error"] = figures.error;
  }
  return {{"id", state.models.name(index)},
          {"object", "model"},
          {"created", state.start_time},
          {"owned_by", "cria"},
          {"status", std::move(status)},
          {"thinking_variable",
           model.thinking_variable.empty() ? Json() : Json(model.thinking_variable)},
          {"meta",
           {{"vocab_size", model.vocab_size},
            {"n_ctx", model.context_tokens},
            {"n_ctx_train", model.longest_context},
            {"size", model.size_bytes}}}};
}

}  // namespace

void HandleOpenAiModels(Exchange& exchange) {
  Json models = Json::array();
  for (size_t i = 0; i < exchange.state.models.size(); ++i) {
    models.push_back(ModelJson(exchange.state, i));
  }
  SendNow(exchange, {{"object", "list"}, {"data", std::move(models)}});
}

void HandleOpenAiModel(Exchange& exchange) {
  SendNow(exchange, ModelJson(exchange.state, IndexOfModel(exchange.state, exchange.name)));
}

// The request has had its model.
void HandleLoadModel(Exchange& exchange) { SendNow(exchange, {{"success", true}}); }

void HandleUnloadModel(Exchange& exchange) {
  const Json body = TakeBody(exchange);
  const size_t index = IndexOfModel(exchange.state, Fields(body).RequiredString("model"));
  if (exchange.state.has_one_model()) {
    RefuseField("model", "is the only model of this server, which stays loaded");
  }
  exchange.state.models.Unload(index);
  SendNow(exchange, {{"success", true}});
}

}  // namespace cria::server
