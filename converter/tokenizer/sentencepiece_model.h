#pragma once

#include <string_view>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Whether the bytes of a tokenizer.model have SentencePiece's format (not, for example,
// tiktoken's).
bool IsSentencePieceModel(std::string_view file);

// Reads SentencePiece's tokenizer.model of type BPE. `where`, the file's path, begins every error
// sentence. What the file does not contain is as in Hugging Face's Llama tokenizer: texts begin
// with the BOS token, and text after a special token with a space.
Result<VocabularyDraft> ReadSentencePieceModel(std::string_view file, std::string_view where);

}  // namespace cria
