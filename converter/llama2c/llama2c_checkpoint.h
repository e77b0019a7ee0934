#pragma once

#include <filesystem>

#include "converter/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Whether the file is one of llama2.c's: it begins with their number, or, in version 0, which has
// none, with seven sizes that fit together.
bool IsLlama2cFile(const std::filesystem::path& path);

// Reads a model of llama2.c, version 0 or 1 (f32), with the tokenizer.model, tokenizer.json or
// tokenizer.bin beside it. What the format leaves to the program, which is the same for all its
// models: rms_norm_eps is 1e-5 and rope_theta 10,000.
Result<Checkpoint> OpenLlama2cCheckpoint(const std::filesystem::path& path);

// Reads tokenizer.bin, which has pieces and scores of SentencePiece but not their types: by
// llama2.c's rule, the first three are unknown, bos and eos.
Result<TokenizerMaterial> ReadLlama2cTokenizer(const std::filesystem::path& path);

}  // namespace cria
