#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "server/api/answer_job.h"
#include "server/api/infill_tokens.h"
#include "text/tokenizer.h"

namespace cria::server {

// What an answer is to be between.
struct InfillText {
  struct File {
    std::string name;
    std::string text;
  };

  std::string prefix;
  std::string suffix;
  std::string prompt;        // Follows the prefix.
  std::vector<File> extras;  // Other files that the model shall know.
};

// The prompt in the order of llama-server: the extras, then prefix, suffix and middle. Of what has
// more tokens than `max_tokens`, the parts nearest to the middle are kept: at most a quarter is the
// suffix, unless the prefix needs less. Throws RequestError.
std::vector<int32_t> EncodeInfill(const Tokenizer& tokenizer, const InfillTokens& marks,
                                  const InfillText& text, size_t max_tokens);

// Refuses a request whose field wants the middle of a text if the vocabulary has no tokens for it.
void CheckInfill(const ServedModel& model, const std::string& field);
// The prompt for an answer of so many tokens, or of a quarter of the context if that is 0. The
// answer also ends at the tokens of InfillTokens. CheckInfill has been called.
TextPrompt InfillPrompt(const ServedModel& model, const InfillText& text, size_t answer_tokens);

}  // namespace cria::server
