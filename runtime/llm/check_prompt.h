#pragma once

#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/token_model.h"

namespace cria {

// Fails unless `tokens` are at least one, fit the context, and are of the vocabulary.
Status CheckPrompt(std::span<const int32_t> tokens, const TokenModel& model);

}  // namespace cria
