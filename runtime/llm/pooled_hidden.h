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

  // How many of the last rows of `num_tokens` tokens are read, which may end the text.
  size_t NumRows(size_t num_tokens, bool end_the_text) const;
  // `hidden`, [hidden_size], is the next of these rows.
  void Add(std::span<const float> hidden);
  // Scales the vector to a Euclidean norm of 1, unless it is zero.
  void Finish() { Normalize(vector_); }

  // Does this to any vector: the beginning of an embedding is one, too, if the model was trained
  // for that (Matryoshka representations, Kusupati et al. 2022).
  static void Normalize(std::span<float> vector);

 private:
  const Pooling pooling_;
  const std::span<float> vector_;
};

}  // namespace cria
