#pragma once

#include <filesystem>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Reads a llama2.c model, version 0 or 1 (f32), and the tokenizer.model, tokenizer.json or
// tokenizer.bin in the same folder. Two values are constants of the llama2.c program, not in the
// file: rms_norm_eps is 1e-5 and rope_theta is 10,000.
Result<Checkpoint> OpenLlama2cCheckpoint(const std::filesystem::path& path);

// Reads tokenizer.bin, which has SentencePiece's pieces and scores but not their types: by
// llama2.c's rule, the first three are unknown, bos and eos.
Result<TokenizerMaterial> ReadLlama2cTokenizer(const std::filesystem::path& path);

}  // namespace cria
