#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "model/vocabulary.h"

namespace cria {

// What a tokenizer.json does with text before byte-pair encoding.
struct PreTokenization {
  TokenizerFamily family = TokenizerFamily::kSentencePieceBpe;
  std::vector<std::string> split_patterns;
  bool normalize_nfc = false;
  bool add_dummy_prefix = false;
  bool dummy_prefix_after_special = false;
  bool dummy_prefix_unless_space = false;
  // Text is split before each space, which makes no difference if no piece of text has a space
  // inside.
  bool splits_at_spaces = false;
};

// Reads "normalizer" and "pre_tokenizer" of a tokenizer.json, whose path is `where`. The forms
// of Llama tokenizers are supported:
// - SentencePiece's: Prepend, Replace and Metaspace, which put U+2581 for spaces;
// - byte-level: Split and Digits, then ByteLevel;
// - with either, NFC.
// Anything else is an error that names it. Metaspace adds its prefix only to text that does not
// begin with a space, Prepend to any.
Result<PreTokenization> ReadPreTokenization(const nlohmann::json& tokenizer,
                                            std::string_view where);

}  // namespace cria
