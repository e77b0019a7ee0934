#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"

namespace cria {

// The decoder as a session sees it; tests replace it with a scripted one.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  virtual size_t vocab_size() const = 0;
  // Number of positions in the KV cache.
  virtual size_t context_tokens() const = 0;
  // Maximum number of tokens that one Forward takes.
  virtual size_t chunk_tokens() const = 0;

  // Runs `tokens` at positions `first_position` and following. The cache must hold all positions
  // before `first_position`; later ones are overwritten.
  virtual Status Forward(std::span<const int32_t> tokens, size_t first_position) = 0;

  // Drops cached positions [first, first + count): positions [first + count, end) move down by
  // `count`, and their keys are rotated to the new positions.
  virtual Status DropPositions(size_t first, size_t count, size_t end) = 0;

  // The logits, [vocab_size], after token `row` of the last Forward. They are valid until the next
  // call; the caller may change them.
  virtual Result<std::span<float>> Logits(size_t row) = 0;
};

}  // namespace cria
