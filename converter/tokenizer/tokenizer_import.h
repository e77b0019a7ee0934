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

// Everything in a model file that concerns text.
struct ImportedTokenizer {
  OwnedVocabulary vocabulary;
  std::string chat_template_source;     // Jinja, unchanged; empty if there is none.
  std::vector<int32_t> stop_token_ids;  // In ascending order.
  std::vector<std::string> notes = {};  // As those of a Checkpoint.
};

// What a checkpoint of any format says about its tokenizer, before the parts are combined. `where`
// names its folder or file in error sentences.
struct TokenizerMaterial {
  VocabularyDraft draft;
  TokenizerSettings settings;
  std::string where;
};

// Reads the tokenizer of a checkpoint in Hugging Face's layout: SentencePiece's tokenizer.model, or
// else tokenizer.json, or else Llama 3's tokenizer.model of tiktoken ranks; and the small files in
// the same folder.
Result<TokenizerMaterial> ReadTokenizer(const std::filesystem::path& checkpoint_dir);

// `vocab_size` is the number of rows of the checkpoint's embedding, or absent if it is not known;
// ids that the tokenizer does not have are unused. `chat_template`, whose text may be empty,
// replaces the checkpoint's own. The result is valid, its split patterns compile, and its template
// renders.
Result<ImportedTokenizer> ImportTokenizer(
    TokenizerMaterial material, std::optional<size_t> vocab_size,
    const std::optional<ChatTemplateSource>& chat_template = {});

}  // namespace cria
