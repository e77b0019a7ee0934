#pragma once

#include <cstddef>
#include <span>

#include "model/pooling.h"

namespace cria {

// Pools the hidden states of one text, which are added in the order of its tokens.
class PooledHidden {
 public:
  // `vector`, [hidden_size], must outlive the object; it has the result after Finish.
  PooledHidden(Pooling pooling, std::span<float> vector);

  // Returns how many of the last rows of a chunk of `num_tokens` tokens are read. `ends_text`: the
  // chunk is the last one of the text.
  size_t NumRows(size_t num_tokens, bool ends_text) const;
  // `hidden`, [hidden_size], is the next of these rows.
  void Add(std::span<const float> hidden);
  // Divides a sum by the number of its rows.
  void Finish();

  // Scales a vector to a Euclidean norm of 1, unless it is zero. The beginning of an embedding,
  // scaled again, is an embedding, too, if the model was trained for that (Matryoshka
  // representations, Kusupati et al. 2022).
  static void Normalize(std::span<float> vector);

 private:
  const Pooling pooling_;
  const std::span<float> vector_;
  size_t num_rows_ = 0;
};

}  // namespace cria
