#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Renders a short conversation with a checkpoint's chat template and the tokenizer's special
// tokens. If the template cannot be rendered, the error says how to convert without it. Otherwise:
// - The tokens with which the template marks turns become control tokens. In some checkpoints they
//   are tokens of ordinary text, which the text of messages could contain.
// - Returns the ids of the tokens that end an answer: the special token that the template writes
//   right after the answer's text.
// In any case, tags around the reasoning of answers become visible text, even if the checkpoint
// has them as control tokens.
// An empty source means that the checkpoint has no template.
Result<std::vector<int32_t>> ImportChatTemplate(std::string_view source, VocabularyDraft* draft);

}  // namespace cria
