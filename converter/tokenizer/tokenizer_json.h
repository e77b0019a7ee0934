#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Turns a Hugging Face tokenizer.json, whose path is `where`, into a vocabulary: byte-pair encoding
// of SentencePiece's kind (Llama 2) or byte-level (Llama 3). Whatever it says that is not
// understood is an error that names the field. The post-processor decides about the bos token.
Result<VocabularyDraft> ReadTokenizerJson(const nlohmann::json& tokenizer, std::string_view where);

// The added tokens alone, for a tokenizer.json that stands beside another model of the vocabulary.
Result<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& tokenizer,
                                                std::string_view where);

// One added token, as they are written in tokenizer.json and tokenizer_config.json. `path` names
// it.
Result<AddedToken> ReadAddedToken(const nlohmann::json& token, uint32_t id, std::string_view where,
                                  std::string_view path);

}  // namespace cria
