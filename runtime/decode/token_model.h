#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "decode/kv_pages.h"

namespace cria {

// The decoder as a session sees it; tests replace it with a scripted one.
class TokenModel {
 public:
  virtual ~TokenModel() = default;

  virtual size_t vocab_size() const = 0;
  // Maximum number of tokens of a sequence.
  virtual size_t context_tokens() const = 0;
  // Maximum number of tokens that one Forward takes.
  virtual size_t chunk_tokens() const = 0;

  // The sequence that Forward runs. It is always open, and the whole context is reserved for it.
  static constexpr SequenceId kSequence = 0;
  // What the KV cache holds. Moves that a change leaves must be passed to Move before anything
  // else.
  virtual KvPages& pages() = 0;
  // Moves rows of the KV cache. If it fails, the rows that it was to move are lost.
  virtual Status Move(std::span<const PageMove> moves) = 0;

  // Runs `tokens` at positions `first_position` and following. The sequence must have all positions
  // before `first_position`; later ones are forgotten. Logits are wanted after the last
  // `num_logits` tokens, from none to all of them; they are computed when Logits asks for them.
  virtual Status Forward(std::span<const int32_t> tokens, size_t first_position,
                         size_t num_logits) = 0;

  // Row `row`, [vocab_size], of the num_logits rows of logits of the last Forward; row 0 is that of
  // the earliest token. It is valid until the next call of any function; the caller may change it,
  // and a later call for the same row computes it again. One product may compute some rows behind
  // the row that is asked for as well, so rows that are asked for in their order take least time.
  virtual Result<std::span<float>> Logits(size_t row) = 0;
};

}  // namespace cria
