#include "server/api/api_state.h"

#include <new>
#include <utility>

#include "core/platform.h"
#include "server/api/model_choice.h"

namespace cria::server {
namespace {

// Calls the handler of a request whose turn it is. What it throws becomes the response.
void RunHandler(Exchange& exchange) {
  Response& response = *exchange.response;
  const bool is_large = exchange.request.body.size() > kMaxBodyBytesOutOfTurn;
  // Requests that name no model are none of its failures.
  const auto count_failure = [&] {
    if (!exchange.lease && !exchange.model_index) return;
    const size_t index = exchange.lease ? exchange.lease->index() : *exchange.model_index;
    ++exchange.state.source(index).metrics.failed_answers;
  };
  try {
    TakeModel(exchange);
    if (is_large) response.TakeTurn(exchange.state.large_requests);
    exchange.handle(exchange);
  } catch (const RequestError& error) {
    if (!response.is_gone()) response.Fail(error);
    if (error.status() >= 500) count_failure();
  } catch (const std::bad_alloc&) {
    count_failure();
    response.Fail({503, "there is too little memory to answer", "", "out_of_memory"});
  } catch (const std::exception& error) {
    count_failure();
    response.Fail({500, error.what()});
  }
  // What was freed while the answer was made may be between blocks that are still in use.
  if (is_large) platform::ReturnFreedMemory();
  response.EndTurn();
}

}  // namespace

ApiState::ApiState(ModelStore& store, WorkQueue& queue, ApiOptions api_options)
    : models(store), work(queue), options(std::move(api_options)), start_time(std::time(nullptr)) {}

Json TakeBody(Exchange& exchange) {
  if (exchange.response == nullptr) return ReadBody(exchange.request.body);
  const std::string body = std::move(exchange.request.body);
  return ReadBody(body);
}

void Submit(Exchange& exchange, const std::function<void(Response&)>& answer) {
  if (exchange.response != nullptr) return answer(*exchange.response);
  Enqueue(exchange);
}

void Enqueue(Exchange& exchange) {
  ApiState& state = exchange.state;
  const auto response = std::make_shared<Response>(exchange.http, exchange.style);
  const auto waiting = std::make_shared<Exchange>(std::move(exchange));
  waiting->response = response.get();
  const bool is_taken = state.work.Submit(
      {.run = [waiting, response] { RunHandler(*waiting); },
       .refuse =
           [response] {
             response->Fail({503, "the server is shutting down", "", "shutting_down"});
           },
       .gone = &waiting->http->gone()});
  if (is_taken) return;
  throw RequestError(429, "the server is busy and its queue is full; try again later", "",
                     "queue_full");
}

void SendText(Exchange& exchange, size_t max_bytes, const std::function<void(TextAnswer&)>& write) {
  const auto answer = [&](Response& response) {
    TextAnswer text(response);
    write(text);
    text.Finish();
  };
  if (max_bytes > TextAnswer::kHeldBytes || exchange.response != nullptr) {
    return Submit(exchange, answer);
  }
  Response response(exchange.http, exchange.style);
  answer(response);
}

void SendNow(Exchange& exchange, const Json& value) {
  const std::string text = Written(value);
  SendText(exchange, text.size(), [&](TextAnswer& answer) { answer.Add(text); });
}

}  // namespace cria::server
