#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "converter/vocabulary_builder.h"
#include "cria/error.h"
#include "model/chat_template_kind.h"

namespace cria {

// Everything about text that a model file holds.
struct ImportedTokenizer {
  OwnedVocabulary vocabulary;
  std::string chat_template_source;  // Jinja, as it was; empty if there is none.
  // kNone with a source: the template is not one of the known forms, or the vocabulary lacks its
  // tokens.
  ChatTemplateKind kind = ChatTemplateKind::kNone;
  std::vector<int32_t> stop_token_ids;  // In ascending order.
};

// Reads the tokenizer of a checkpoint in Hugging Face's layout: SentencePiece's tokenizer.model, or
// else tokenizer.json, or else Llama 3's tokenizer.model of tiktoken ranks; with the small files
// beside it. `vocab_size` is the number of rows of the checkpoint's embedding; ids that the
// tokenizer does not have are unused. The result is valid, and its split patterns compile.
Result<ImportedTokenizer> ImportTokenizer(const std::filesystem::path& checkpoint_dir,
                                          size_t vocab_size);

}  // namespace cria
