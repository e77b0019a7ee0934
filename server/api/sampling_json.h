#pragma once

#include "llm/sampler.h"
#include "server/requests/json_body.h"

namespace cria::server {

// The steps of the sampler with llama-server's names, as /props and answers tell them.
Json SamplerJson(const SamplerOptions& sampler);

}  // namespace cria::server
