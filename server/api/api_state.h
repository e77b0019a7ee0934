#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "llm/engine.h"
#include "server/api/api.h"
#include "server/api/model_request.h"
#include "server/api/response.h"
#include "server/api/served_model.h"
#include "server/api/text_answer.h"
#include "server/http/http_exchange.h"
#include "server/models/model_store.h"
#include "server/work/work_queue.h"

namespace cria::server {

// What all paths share.
struct ApiState {
  ApiState(ModelStore& store, WorkQueue& queue, ApiOptions api_options);

  // The only model is loaded as long as the server runs, whatever name requests give it.
  bool has_one_model() const { return models.size() == 1; }
  ServedSource& source(size_t index) const {
    return static_cast<ServedSource&>(models.source(index));
  }

  ModelStore& models;  // Each one's source is a ServedSource.
  WorkQueue& work;
  const ApiOptions options;
  const std::time_t start_time;
  std::atomic<bool> has_told_context = false;  // ApiOptions::on_larger_context was called.
  std::atomic<bool> has_told_change = false;   // ApiOptions::on_changed_beginning was called.
  // Large requests are read one after the other: the memory of one of them is planned.
  std::mutex large_requests;
};

struct Exchange;

// Answers, or throws RequestError. It is called on the HTTP thread, and once more on a thread of
// the queue if it calls Submit.
using PathHandler = void (*)(Exchange&);

// Whether a path needs a model.
enum class ModelUse : uint8_t {
  kNone,
  kNeeded,
  kOptional,   // If the request names one, or there is one alone.
  kMayUnload,  // ollama's answers: a request without a text and time only unloads the model.
};

// One request to a path.
struct Exchange {
  // The model that the request is for. The path needs one, and it is loaded.
  ServedModel& model() const { return static_cast<ServedModel&>(lease->model()); }
  const std::string& model_name() const {
    return state.models.name(lease ? lease->index() : *model_index);
  }

  ApiState& state;
  HttpRequest request;
  std::shared_ptr<HttpAnswer> http;
  Response::Style style = Response::Style::kOpenAi;
  PathHandler handle = nullptr;
  ModelUse use = ModelUse::kNone;
  std::string name = {};  // What the path has in the place of a '*'.
  // On a thread of the queue, what writes the answer; null on the HTTP thread.
  Response* response = nullptr;
  // The one of several models that the request names, and what else it says of it.
  std::optional<size_t> model_index = {};
  ModelRequest asked = {};
  std::optional<ModelStore::Lease> lease = {};
  bool has_unloaded = false;  // There is no lease: the request wanted no more.
};

// A larger body is read while no other one is.
inline constexpr size_t kMaxBodyBytesOutOfTurn = size_t{2} << 10;

// Reads the object of the body. On a thread of the queue, the body's text is freed: what becomes of
// it takes its place.
Json TakeBody(Exchange& exchange);

// On the HTTP thread, puts the request into the queue, and throws RequestError with 429 if that is
// full. When it is its turn, its handler is called again, and comes back to here: then `answer` is
// called. So what is wrong with a request is told at once, but requests wait as texts, whose
// memory is bounded, and not as what they become.
void Submit(Exchange& exchange, const std::function<void(Response&)>& answer);
// Puts the request into the queue.
void Enqueue(Exchange& exchange);

// Calls `write` with an answer of at most `max_bytes`. A short answer is sent at once, because it
// may wait as a whole until its client takes it; a longer one is written on a thread of the queue.
void SendText(Exchange& exchange, size_t max_bytes, const std::function<void(TextAnswer&)>& write);
// Sends one value by SendText.
void SendNow(Exchange& exchange, const Json& value);

}  // namespace cria::server
