#pragma once

#include "converter/gguf/gguf_metadata.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "cria/error.h"

namespace cria {

// The tokenizer and the chat template in a GGUF file's metadata: SentencePiece's BPE
// (`tokenizer.ggml.model` is "llama") or byte-level BPE ("gpt2") with a known pre-tokenizer.
// Missing keys have llama.cpp's defaults. `add_eos_token` is for embeddings alone, because a prompt
// must not end.
Result<TokenizerMaterial> ReadGgufTokenizer(const GgufMetadata& metadata);

}  // namespace cria
