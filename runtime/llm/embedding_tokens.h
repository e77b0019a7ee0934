#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "llm/engine.h"

namespace cria {

// The tokens of a text that is embedded, with those that the model's tokenizer puts before and
// behind it. Names of control tokens become these tokens, as in
// sentence-transformers. If they do not fit the context, this fails with kOutOfRange, or with
// `truncates`, the rest of the text is left out.
Result<std::vector<int32_t>> EmbeddingTokens(const Engine& engine, std::string_view text,
                                             bool truncates = false);

}  // namespace cria
