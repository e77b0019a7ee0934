#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>

#include "llm/engine.h"
#include "serve/api/api.h"
#include "serve/api/metrics.h"
#include "serve/api/response.h"
#include "serve/http/http_exchange.h"
#include "serve/work/session_pool.h"
#include "serve/work/work_queue.h"

namespace cria::serve {

// What all paths share.
struct ApiState {
  ApiState(Engine& model_engine, WorkQueue& queue, ApiOptions api_options);

  Engine& engine;
  WorkQueue& work;
  const ApiOptions options;
  const std::string model_name;
  const std::time_t start_time;
  SessionPool sessions;
  Metrics metrics;
  std::atomic<bool> has_told_context = false;  // ApiOptions::on_larger_context was called.
};

// One request to a path.
struct Exchange {
  ApiState& state;
  HttpRequest request;
  std::shared_ptr<HttpAnswer> http;
  Response::Style style = Response::Style::kOpenAi;
  std::string name = {};  // What the path has in the place of a '*'.
};

// Answers, or throws RequestError. On the HTTP thread.
using PathHandler = void (*)(Exchange&);

// Runs `answer` on a thread of the queue. What it throws becomes the response. Throws RequestError
// with 429 if the queue is full.
void Submit(Exchange& exchange, std::function<void(Response&)> answer);

// Sends a value at once.
void SendNow(Exchange& exchange, const Json& value);

}  // namespace cria::serve
