#include "converter/checkpoint/reranking_material.h"

#include <cstddef>

#include "core/format.h"

namespace cria {

const char* const kQwen3RerankerPrompt =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and "
    "the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n"
    "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
    "answer the query\n<Query>: {query}\n<Document>: {document}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n";

Result<std::vector<float>> DifferenceOfRows(const TensorSource& matrix, uint64_t row,
                                            uint64_t subtracted) {
  const auto columns = static_cast<size_t>(matrix.shape.back());
  std::vector<float> difference(columns);
  std::vector<float> other(columns);
  TensorReader reader;
  CRIA_RETURN_IF_ERROR(reader.Read(matrix, row * columns, difference));
  CRIA_RETURN_IF_ERROR(reader.Read(matrix, subtracted * columns, other));
  for (size_t i = 0; i < columns; ++i) difference[i] -= other[i];
  return difference;
}

}  // namespace cria
