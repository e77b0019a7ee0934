#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"

namespace cria {

// What a session needs of a decoder, so that tests can script one.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  virtual size_t vocab_size() const = 0;
  // Positions that the KV cache can hold.
  virtual size_t context_tokens() const = 0;
  // The most tokens that one Forward takes.
  virtual size_t chunk_tokens() const = 0;

  // Runs `tokens` at positions `first_position` and on; the cache holds all before it. What the
  // cache held from `first_position` on is overwritten.
  virtual Status Forward(std::span<const int32_t> tokens, size_t first_position) = 0;

  // Drops cached positions [first, first + count): what lies behind them, up to `end`, moves down
  // by `count`, as if it had been stored there (keys re-rotated).
  virtual Status DropPositions(size_t first, size_t count, size_t end) = 0;

  // The logits, [vocab_size], after token `row` of the last Forward. Valid, and the caller's to
  // change, until the next call.
  virtual Result<std::span<float>> Logits(size_t row) = 0;
};

}  // namespace cria
