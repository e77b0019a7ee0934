#pragma once

#include "converter/gguf/gguf_metadata.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "cria/error.h"

namespace cria {

// The tokenizer that a GGUF file's metadata holds, with the chat template: SentencePiece's BPE
// (`tokenizer.ggml.model` is "llama") or byte-level BPE ("gpt2") of a known pre-tokenizer. What the
// file does not say is as in llama.cpp. `add_eos_token` is not heeded: a text that is to go on
// must not end.
Result<TokenizerMaterial> ReadGgufTokenizer(const GgufMetadata& metadata);

}  // namespace cria
