#include "server/api/model_choice.h"

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/format.h"
#include "server/requests/request_error.h"

namespace cria::server {
namespace {

std::string NamesOf(const ModelStore& models) {
  constexpr size_t kMaxNames = 8;
  std::string names;
  for (size_t i = 0; i < models.size() && i < kMaxNames; ++i) {
    names += Format("{}\"{}\"", i == 0 ? "" : ", ", models.name(i));
  }
  return names + (models.size() > kMaxNames ? " and others" : "");
}

// Finds out which model the request is for.
void ChooseModel(Exchange& exchange) {
  exchange.asked = ReadModelRequest(exchange.request.body);
  if (auto name = QueryValue(exchange.request.query, "model")) {
    exchange.asked.model = std::move(*name);
  }
  if (!exchange.asked.model || exchange.asked.model->empty()) {
    RefuseField("model", "is missing: this server has " + NamesOf(exchange.state.models));
  }
  exchange.model_index = IndexOfModel(exchange.state, *exchange.asked.model);
}

bool OnlyUnloads(const Exchange& exchange) {
  const ModelRequest& asked = exchange.asked;
  return exchange.use == ModelUse::kMayUnload && !asked.has_messages && !asked.has_prompt &&
         asked.keep_alive == ModelStore::Clock::duration(0);
}

[[noreturn]] void ThrowNotLoaded(const std::string& name, const Error& error) {
  if (error.code() == ErrorCode::kCancelled) {
    throw RequestError(503, error.message(), "", "shutting_down");
  }
  throw RequestError(500, Format("the model \"{}\" cannot be loaded: {}", name, error.message()),
                     "model", "model_not_loaded");
}

}  // namespace

size_t IndexOfModel(const ApiState& state, std::string_view name) {
  constexpr std::string_view kTag = ":latest";
  std::optional<size_t> found = state.models.Find(name);
  if (!found && name.ends_with(kTag)) {
    found = state.models.Find(name.substr(0, name.size() - kTag.size()));
  }
  if (found) return *found;
  throw RequestError(
      404, Format("there is no model \"{}\"; this server has {}", name, NamesOf(state.models)),
      "model", "model_not_found");
}

bool IsReady(Exchange& exchange, bool is_short) {
  ModelStore& models = exchange.state.models;
  if (exchange.use == ModelUse::kNone) return true;
  if (exchange.state.has_one_model()) {
    exchange.lease.emplace(std::move(*models.Peek(0)));
    return true;
  }
  if (exchange.use == ModelUse::kOptional && !QueryValue(exchange.request.query, "model")) {
    exchange.use = ModelUse::kNone;
    return true;
  }
  if (is_short) ChooseModel(exchange);
  return false;
}

void TakeModel(Exchange& exchange) {
  if (exchange.use == ModelUse::kNone || exchange.lease) return;
  if (!exchange.model_index) {
    const std::lock_guard turn(exchange.state.large_requests);
    ChooseModel(exchange);
  }
  const size_t index = *exchange.model_index;
  ModelStore& models = exchange.state.models;
  if (OnlyUnloads(exchange)) {
    models.Unload(index);
    exchange.has_unloaded = true;
    return;
  }
  Result<ModelStore::Lease> lease = models.Acquire(
      {.index = index, .keep_alive = exchange.asked.keep_alive, .gone = &exchange.http->gone()});
  if (!lease) ThrowNotLoaded(models.name(index), lease.error());
  exchange.lease.emplace(std::move(*lease));
}

}  // namespace cria::server
