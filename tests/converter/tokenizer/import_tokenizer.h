#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "converter/tokenizer/tokenizer_import.h"

namespace cria {

// Reads and imports the tokenizer of a folder in Hugging Face's layout.
inline Result<ImportedTokenizer> ImportTokenizerOf(
    const std::filesystem::path& folder, size_t vocab_size,
    const std::optional<ChatTemplateSource>& chat_template = {}) {
  CRIA_ASSIGN_OR_RETURN(TokenizerMaterial material, ReadTokenizer(folder));
  return ImportTokenizer(std::move(material), vocab_size, chat_template);
}

}  // namespace cria
