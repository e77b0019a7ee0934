#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/engine.h"

namespace cria {

// The tokens of the question whether `document` answers `query`, of a model that has
// ModelFile::reranking. Names of control tokens in the two texts are text. If the tokens do not fit
// the context, this fails with kOutOfRange.
Result<std::vector<int32_t>> RerankTokens(const Engine& engine, std::string_view query,
                                          std::string_view document);

// The answer to the question, from 0 to 1 for a document that answers the query (Reranking). Any
// thread may call this; questions of several threads run as one batch. `cancel` may be null; it
// ends the call with kCancelled.
Result<double> RerankScore(Engine& engine, std::span<const int32_t> tokens,
                           const std::atomic<bool>* cancel = nullptr);

}  // namespace cria
