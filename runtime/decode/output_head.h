#pragma once

#include <cstddef>
#include <span>

#include "core/arena.h"
#include "cria/error.h"
#include "decode/hidden_state.h"
#include "decode/projection.h"
#include "decode/rank_link.h"
#include "decode/tensor_places.h"
#include "decode/workers.h"
#include "model/config.h"

namespace cria {

// The last norm and the product with lm_head, which make logits of rows of the hidden state. They
// are computed when somebody asks for them, because a row without a reader needs none.
class OutputHead {
 public:
  static ArenaLayout::RegionId Plan(const DecoderShape& shape, ArenaLayout& layout);

  // `logits`, f32 [max_logit_rows][vocab_size], is the planned region. All must outlive the object.
  OutputHead(const DecoderShape& shape, float* logits, const Workers& workers, RankLink& ranks,
             const HiddenState& hidden);

  // The weights of the model's last norm, [hidden_size].
  const float* norm() const { return norm_; }

  // `output_channels` is the vocabulary, or this rank's part of it.
  void AddPlaces(TensorPlaces& places, size_t output_channels);

  // After this, there are logits for the first `rows` rows of the hidden state.
  void Begin(size_t rows);
  // TokenModel::Logits.
  Result<std::span<float>> Logits(size_t row);
  // TokenModel::HiddenState.
  Result<std::span<const float>> Hidden(size_t row) const;
  // Computes `rows` rows from row `first` on.
  Status Compute(size_t first, size_t rows);
  // For benchmarks: runs only the product, with any values in the buffers, and forgets the logits.
  Status RunProduct(size_t rows);

 private:
  Status CheckRow(size_t row) const;
  // Caps rows of logits, if the model does that.
  void Cap(size_t rows) const;

  const ModelConfig& config_;
  const size_t max_rows_;  // The most rows of one product.
  float* const logits_;
  const Workers& workers_;
  RankLink& ranks_;
  const HiddenState& hidden_;
  const float* norm_ = nullptr;  // [hidden_size]
  Projection lm_head_;
  size_t num_rows_ = 0;
  // Rows [begin_, end_) of the logits are computed, one behind another in `logits_`.
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace cria
