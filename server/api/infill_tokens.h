#pragma once

#include <cstdint>
#include <optional>

#include "model/vocabulary.h"

namespace cria::server {

// The tokens with which a model is asked for what is missing in the middle of a text. Those that a
// vocabulary lacks are -1.
struct InfillTokens {
  int32_t prefix = -1;
  int32_t suffix = -1;
  int32_t middle = -1;
  int32_t pad = -1;
  int32_t repository = -1;  // Is before the name of a repository.
  int32_t file = -1;        // Is before the name of a file.
};

// Finds them by the names that known models have. Nothing if there are no prefix, suffix and
// middle.
std::optional<InfillTokens> FindInfillTokens(const Vocabulary& vocabulary);

}  // namespace cria::server
