#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Converts a Hugging Face tokenizer.json, whose path is `where`, into a vocabulary: byte-pair
// encoding of SentencePiece's kind (Llama 2) or byte-level (Llama 3). If a field has an unsupported
// value, fails and names the field. The post-processor decides whether texts begin with the BOS
// token.
Result<VocabularyDraft> ReadTokenizerJson(const nlohmann::json& tokenizer, std::string_view where);

// Only the added tokens, for a tokenizer.json beside another file with the vocabulary.
Result<std::vector<AddedToken>> ReadAddedTokens(const nlohmann::json& tokenizer,
                                                std::string_view where);

// Fails if a token is "normalized", which means that it is searched for in text that the normalizer
// of this tokenizer.json has changed, and this is not the same as searching in the text itself.
// Special tokens may be: only a template writes them, which means them wherever they stand. (Behind
// the normalizer Prepend, as in Llama 2's first files, the library tokenizers finds also these only
// after a space, so that a turn would not end. The class that transformers has for such files finds
// them everywhere, as this runtime does.)
Status CheckNormalizedTokens(const nlohmann::json& tokenizer, std::span<const AddedToken> tokens,
                             std::string_view where);

// One added token, as in tokenizer.json and tokenizer_config.json. `path` names it in errors.
Result<AddedToken> ReadAddedToken(const nlohmann::json& token, uint32_t id, std::string_view where,
                                  std::string_view path);

}  // namespace cria
