#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "converter/tokenizer/chat_template_source.h"
#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// The settings in the small files beside a tokenizer. Fields that no file sets stay empty.
struct TokenizerSettings {
  std::optional<bool> add_bos_token;
  std::optional<bool> add_prefix_space;
  std::optional<bool> legacy;  // SentencePiece: text after a special token gets a space, too.
  std::string bos_token;       // The text of the token, as for the next ones.
  std::string eos_token;
  std::vector<AddedToken> added_tokens;
  // Texts of tokens that are special even if they are none of `added_tokens`.
  std::vector<std::string> special_tokens;
  ChatTemplateSource chat_template;
  std::optional<uint32_t> bos_token_id;
  std::vector<uint32_t> eos_token_ids;
};

// Reads those of tokenizer_config.json, special_tokens_map.json, added_tokens.json,
// chat_template.jinja (or chat_template.json), generation_config.json and config.json that exist in
// `folder`. `tokenizer_json` is the tokenizer.json there, or null; tokenizer_config.json's added
// tokens have precedence over its added tokens.
Result<TokenizerSettings> ReadTokenizerSettings(const std::filesystem::path& folder,
                                                const nlohmann::json& tokenizer_json);

}  // namespace cria
