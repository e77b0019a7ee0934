#pragma once

#include <span>
#include <string_view>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Reads Llama 3's tokenizer.model: each line is a token in base64 and its rank. `added_tokens` are
// the special tokens, which are not in that file. `where`, the file's path, begins error sentences.
Result<VocabularyDraft> ReadTiktokenRanks(std::string_view file,
                                          std::span<const AddedToken> added_tokens,
                                          std::string_view where);

}  // namespace cria
