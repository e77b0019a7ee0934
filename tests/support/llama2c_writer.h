#pragma once

#include <filesystem>

#include "reference/reference_model.h"

namespace cria::support {

// Writes `model`, whose heads have hidden_size / num_attention_heads channels, as llama2.c's
// export.py does: version 0 or 1.
void WriteLlama2c(const reference::ReferenceModel& model, int version,
                  const std::filesystem::path& path);

// tokenizer.bin of 300 tokens: the first three, 256 bytes, and letters with words made of them.
void WriteLlama2cTokenizer(const std::filesystem::path& path);

}  // namespace cria::support
