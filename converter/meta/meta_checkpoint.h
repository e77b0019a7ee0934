#pragma once

#include <filesystem>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads a folder as Meta distributes Llama models: params.json, consolidated.NN.pth for each of the
// processors that it was split for, and tokenizer.model. Values that the files do not have are as
// in Meta's own code:
// - max_position_embeddings: `max_seq_len`, or 131,072 with `use_scaled_rope`, 8,192 with ranks of
//   tiktoken (Llama 3), 16,384 with another rope_theta (Code Llama), 2,048 if norm_eps is 1e-6
//   (Llama 1), and 4,096 (Llama 2);
// - the factor of scaled rotary frequencies: `rope_scaling_factor`, or 32 for models with fewer
//   than 4,096 channels (1B and 3B of Llama 3.2; Meta corrected it right after the release), and
//   8 for others.
Result<Checkpoint> OpenMetaCheckpoint(const std::filesystem::path& folder);

// Reads only the tokenizer.
Result<CheckpointVocabulary> OpenMetaVocabulary(const std::filesystem::path& folder);

}  // namespace cria
