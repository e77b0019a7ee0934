#pragma once

#include <optional>
#include <vector>

#include "converter/checkpoint/checkpoint.h"
#include "converter/gguf/gguf_metadata.h"
#include "converter/input/tensor_source.h"
#include "cria/error.h"

namespace cria {

// How a file with llama.cpp's pooling type `rank` ranks documents, as its converter writes
// Qwen3-Reranker; nothing of other files. The two rows of the answers are removed from `tensors`.
// Fails with kUnsupported for a classifier with other answers.
Result<std::optional<RerankingMaterial>> TakeGgufReranking(const GgufMetadata& metadata,
                                                           std::vector<TensorSource>& tensors);

}  // namespace cria
