#include "llm/embedding_tokens.h"

#include <algorithm>
#include <cstddef>

namespace cria {

Result<std::vector<int32_t>> EmbeddingTokens(const Engine& engine, std::string_view text,
                                             bool truncates) {
  const int32_t appended = engine.tokenizer().vocabulary().appended_token_id;
  const size_t context = engine.decoder().context_tokens() - (appended >= 0 ? 1 : 0);
  CRIA_ASSIGN_OR_RETURN(
      std::vector<int32_t> tokens,
      engine.tokenizer().Encode(
          text, {.parse_special = true, .max_tokens = truncates ? SIZE_MAX : context}));
  if (truncates) tokens.resize(std::min(tokens.size(), context));
  if (appended >= 0) tokens.push_back(appended);
  return tokens;
}

}  // namespace cria
