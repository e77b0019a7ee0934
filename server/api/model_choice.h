#pragma once

#include <cstddef>
#include <string_view>

#include "server/api/api_state.h"

namespace cria::server {

// The model with this name, also as ollama's clients write it: "NAME:latest". Throws RequestError
// with 404 if there is none.
size_t IndexOfModel(const ApiState& state, std::string_view name);

// On the HTTP thread: whether the request can be answered without waiting for a model. With one
// model, the exchange has it from now on; of several, it has a model's number if `is_short`, which
// is whether the body may be read here. Throws RequestError.
bool IsReady(Exchange& exchange, bool is_short);
// On a thread of the queue: waits for the request's model, if it needs one and has none. It is
// loaded if it is not. Throws RequestError.
void TakeModel(Exchange& exchange);

}  // namespace cria::server
