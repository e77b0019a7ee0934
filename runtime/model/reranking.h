#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "cria/error.h"

namespace cria {

// What stands in a prompt in the places of the two texts.
inline constexpr std::string_view kQueryPlace = "{query}";
inline constexpr std::string_view kDocumentPlace = "{document}";

// How a model says whether a document answers a query: the score is sigmoid(weight · h), where h is
// the hidden state of the prompt's last token behind the last norm. With the difference of the
// head's rows of "yes" and "no" as the weight, this is the softmax over the two logits.
struct Reranking {
  // Has each of the places once. The names of control tokens outside of them are these tokens.
  std::string_view prompt;
  std::span<const float> weight;  // [hidden_size]
};

// Fails unless the prompt has the places, and all numbers are finite.
Status ValidateReranking(const Reranking& reranking, size_t hidden_size);

}  // namespace cria
