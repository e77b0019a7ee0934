#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/tokenizer/tokenizer_settings.h"
#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Everything about text that a model file holds.
struct ImportedTokenizer {
  OwnedVocabulary vocabulary;
  std::string chat_template_source;     // Jinja, as it was; empty if there is none.
  std::vector<int32_t> stop_token_ids;  // In ascending order.
};

// What a checkpoint says about its tokenizer, whatever its format, before the parts are put
// together. `where` names its folder or file in error sentences.
struct TokenizerMaterial {
  VocabularyDraft draft;
  TokenizerSettings settings;
  std::string where;
};

// Reads the tokenizer of a checkpoint in Hugging Face's layout: SentencePiece's tokenizer.model, or
// else tokenizer.json, or else Llama 3's tokenizer.model of tiktoken ranks; with the small files
// beside it.
Result<TokenizerMaterial> ReadTokenizer(const std::filesystem::path& checkpoint_dir);

// `vocab_size` is the number of rows of the checkpoint's embedding, or, where nothing tells,
// absent: ids that the tokenizer does not have are unused. `chat_template`, which may be empty,
// takes the place of the checkpoint's own. The result is valid, its split patterns compile, and its
// template renders.
Result<ImportedTokenizer> ImportTokenizer(TokenizerMaterial material,
                                          std::optional<size_t> vocab_size,
                                          const std::optional<std::string>& chat_template = {});

}  // namespace cria
