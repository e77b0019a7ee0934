#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/tokenizer/vocabulary_builder.h"
#include "cria/error.h"

namespace cria {

// Makes special tokens of marks that some GGUF files have as ordinary text, such as
// "<end_of_turn>": otherwise the model would read the letters of its marks, and answers would not
// end. These are `end_tokens`, the mark that the template writes right after an answer, and other
// marks of the template that no text becomes, so that they would be of no use. Returns their texts.
Result<std::vector<std::string>> MakeMarksSpecial(std::string_view source,
                                                  std::span<const std::string_view> end_tokens,
                                                  VocabularyDraft* draft);

// Renders a short conversation with a checkpoint's chat template and the tokenizer's special
// tokens. If the template cannot be rendered, the error says how to convert without it. Otherwise:
// - The tokens with which the template marks turns become control tokens. In some checkpoints they
//   are tokens of ordinary text, which the text of messages could contain.
// - Returns the ids of the tokens that end an answer: the special token that the template writes
//   right after the answer's text.
// In any case, tags around the reasoning of answers become visible text, even if the checkpoint
// has them as control tokens.
// An empty source means that the checkpoint has no template. Adds sentences to `notes` about what
// is special in using the template: that it fails without tools, that it reads contents only as
// lists of parts, or that it does not write what the user says.
Result<std::vector<int32_t>> ImportChatTemplate(std::string_view source, VocabularyDraft* draft,
                                                std::vector<std::string>* notes = nullptr);

}  // namespace cria
