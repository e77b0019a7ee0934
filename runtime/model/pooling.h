#pragma once

#include <cstdint>

namespace cria {

// How the hidden states of a text's tokens become one vector, its embedding. With causal attention,
// only the last token has seen the whole text.
enum class Pooling : uint8_t {
  kLast,  // The last token's.
  kMean,  // The mean of all tokens'.
};

}  // namespace cria
