#pragma once

#include <string_view>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Whether the bytes of a tokenizer.model are SentencePiece's (and not, say, tiktoken's ranks).
bool IsSentencePieceModel(std::string_view file);

// Reads SentencePiece's tokenizer.model of type BPE. `where`, the file's path, begins every error
// sentence. What the file does not say is set as the Llama tokenizer in Hugging Face's library
// does: texts begin with the bos token, and text after a special token with a space.
Result<VocabularyDraft> ReadSentencePieceModel(std::string_view file, std::string_view where);

}  // namespace cria
