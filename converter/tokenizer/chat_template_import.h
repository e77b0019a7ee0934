#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Tries a checkpoint's chat template, wherever it was found, on a short conversation with the
// tokenizer's special tokens. An error, that of a template which cannot be rendered, says how to
// convert without it. Otherwise:
// - The tokens that the template writes turns with become control tokens, so that nobody can write
//   them into a conversation; some checkpoints have them as tokens of ordinary text.
// - Returns the ids of the tokens that end an answer: what comes right after its text, where that
//   is a special token.
// An empty source is a checkpoint without a template.
Result<std::vector<int32_t>> ImportChatTemplate(std::string_view source, VocabularyDraft* draft);

}  // namespace cria
