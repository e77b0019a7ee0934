#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "server/api/api_state.h"
#include "server/api/response.h"
#include "server/requests/json_bounds.h"
#include "server/requests/prompts.h"

namespace cria::server {

// What a request for embeddings asks for.
struct EmbeddingRequest {
  std::vector<PromptText> inputs;
  const char* field = "input";  // Where the request has them.
  size_t num_dimensions = 0;    // How many of the first numbers; 0: all.
  bool truncates = false;       // What is longer than the context is cut off, and not refused.
};

// The field `dimensions`; 0 if it is missing.
size_t ReadDimensions(const ServedModel& model, const Fields& request);

// Called with the embedding of each input, in order: its index and the numbers, which are valid
// during the call.
using EmbeddingCallback = std::function<void(size_t index, std::span<const float> embedding)>;

// Embeds the inputs: threads that have no job help, so that several run as one batch. What is wrong
// with any of them is told before the first one is run, and `on_embedding` is called on this
// thread. Returns how many tokens they have, or throws RequestError.
size_t EmbedInputs(Exchange& exchange, EmbeddingRequest request, Response& response,
                   const EmbeddingCallback& on_embedding);

}  // namespace cria::server
