#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "converter/input/tensor_source.h"
#include "cria/error.h"

namespace cria {

// What a model file says of ranking documents (model/reranking.h).
struct RerankingMaterial {
  std::string prompt;
  // [hidden_size]; empty until the tokenizer is read, which knows the answers' rows of the head.
  std::vector<float> weight = {};
};

// Qwen3-Reranker's question, as its model card has it, with the instruction for web searches.
extern const char* const kQwen3RerankerPrompt;

// One row of a matrix less another.
Result<std::vector<float>> DifferenceOfRows(const TensorSource& matrix, uint64_t row,
                                            uint64_t subtracted);

}  // namespace cria
