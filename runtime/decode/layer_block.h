#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/numeric.h"
#include "cria/error.h"
#include "decode/batch_placement.h"
#include "decode/hidden_state.h"
#include "decode/projection.h"
#include "decode/rank_link.h"
#include "decode/tensor_places.h"
#include "decode/workers.h"
#include "model/config.h"
#include "ops/quantized_blocks.h"

namespace cria {

// What all blocks of a decoder work with. All must outlive the blocks.
struct LayerContext {
  const ModelConfig& config;
  const Workers& workers;
  RankMath& ranks;
  const HiddenState& hidden;
};

// A half of a layer. Its rows begin as HiddenState::block_input(), ready for input(), and end in
// HiddenState::block_output(), from where they are added to the hidden state.
class LayerBlock {
 public:
  explicit LayerBlock(const LayerContext& context)
      : config_(context.config),
        workers_(context.workers),
        ranks_(context.ranks),
        hidden_(context.hidden) {}
  virtual ~LayerBlock() = default;

  // Where the block's own tensors are loaded; norms before and after it are the layer's.
  virtual void AddPlaces(TensorPlaces& places) = 0;

  // The product that reads the block's input.
  virtual const Projection& input() const = 0;
  // [hidden_size], added to each row of the output; null if there is none.
  virtual const float* output_bias() const = 0;

 protected:
  const ModelConfig& config_;
  const Workers& workers_;
  RankMath& ranks_;
  const HiddenState& hidden_;
};

// The block through which a row sees earlier rows of its sequence. Rows whose output nobody reads
// end between Store and Mix.
class TokenMixer : public LayerBlock {
 public:
  using LayerBlock::LayerBlock;

  // Adds all rows of the batch to what is kept of their sequences for later rows.
  virtual Status Store(const BatchPlacement& placement, size_t rows) = 0;
  // As Store, in the last layer that keeps anything: only the placement's logit rows are left by
  // Keep afterwards, so what only Mix reads need not be computed for the others.
  virtual Status StoreLast(const BatchPlacement& placement, size_t rows) {
    return Store(placement, rows);
  }
  // Leaves only `rows`, in ascending order: they become the first rows.
  virtual void Keep(std::span<const uint32_t> rows) = 0;
  // Computes the output of the rows that are left.
  virtual Status Mix(const BatchPlacement& placement, size_t rows) = 0;
  // For benchmarks: runs only the products of Store with `rows` rows and of Mix with `mixed_rows`,
  // with any values in the buffers.
  virtual Status RunProducts(size_t rows, size_t mixed_rows) = 0;
  // For a recurrent layer: its state after the first `num_rows` rows that are kept behind the state
  // in a place. It is in the place itself, or else in `scratch`, which has as many elements as a
  // state. With 0 rows, it is always in the place.
  virtual std::span<float> StateAfter(size_t place, size_t num_rows,
                                      std::span<float> scratch) const {
    static_cast<void>(place);
    static_cast<void>(num_rows);
    static_cast<void>(scratch);
    return {};
  }
};

// The block that computes each row by itself.
class FeedForward : public LayerBlock {
 public:
  using LayerBlock::LayerBlock;

  virtual Status Run(size_t rows) = 0;
  // For benchmarks: runs only the products, with any values in the buffers.
  virtual Status RunProducts(size_t rows) = 0;

 protected:
  // Makes the inputs of `down_proj`, of which row r has `width` at inputs + r * stride, in place of
  // the `stride` numbers that are there: calls `activate(row, begin, end)`, which writes those from
  // `begin` up to, but without, `end`, and makes them ready. Threads share a single row, too,
  // unless its scale depends on all inputs: four of them would otherwise wait for one in about 4%
  // of a token's time.
  template <typename Activate>
  void MakeInputs(const Projection& down_proj, const float* inputs, size_t rows, size_t width,
                  size_t stride, const Activate& activate) const {
    constexpr size_t kPartWidth = 16 * ops::kActivationBlock;
    const bool is_shared = down_proj.input_form() != xnn::InputForm::kRows;
    const size_t part_width = is_shared ? std::min(width, kPartWidth) : width;
    const size_t num_parts = DivideRoundingUp(width, part_width);
    workers_.ForEachRow(rows * num_parts, stride * part_width / width, [&](size_t index) {
      const size_t row = index / num_parts;
      const size_t begin = index % num_parts * part_width;
      const size_t end = std::min(width, begin + part_width);
      activate(row, begin, end);
      hidden_.MakePartReady(down_proj, inputs + row * stride, begin, end, row);
    });
    workers_.Count(OperatorKind::kActivation);
  }
};

}  // namespace cria
