#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/arena.h"
#include "cria/error.h"
#include "decode/decoder_options.h"
#include "decode/projection.h"
#include "decode/rank_link.h"
#include "decode/workers.h"

namespace cria {

// The rows of the hidden state, to which each block of a layer adds its output, and what happens to
// them between two blocks: norms, and preparing the input of the next block's product.
class HiddenState {
 public:
  struct Regions {
    ArenaLayout::RegionId hidden;         // f32 [chunk][hidden_size]
    ArenaLayout::RegionId normed;         // f32 [chunk][hidden_size]
    ArenaLayout::RegionId projected;      // f32 [chunk][hidden_size]
    ArenaLayout::RegionId quantized;      // int8 [chunk][widest input]
    ArenaLayout::RegionId quantizations;  // RowQuantization [chunk + extra]
  };
  // `widest_input`: of all products whose inputs are rows of a batch.
  static Regions Plan(const DecoderShape& shape, size_t widest_input, ArenaLayout& layout);

  // `is_rotated`: the rows are multiplied by the Hadamard matrix of ops/hadamard.h. All must
  // outlive the object.
  HiddenState(const DecoderShape& shape, const Regions& regions, const ArenaView& arena,
              const Workers& workers, RankMath& ranks, bool is_rotated);

  float* Row(size_t row) const { return hidden_ + row * size_; }
  // What the products at the beginning of a block read, [rows][hidden_size]: normalized rows, or
  // without norms before blocks the hidden state. Blocks may also read Row(0) and what follows it.
  const float* block_input() const { return has_norms_before_ ? normed_ : hidden_; }
  // Where a block leaves its output, [rows][hidden_size].
  float* block_output() const { return projected_; }
  // What the head reads, [rows][hidden_size].
  const float* normed() const { return normed_; }
  // For the inputs of all products of one row for each row of the batch.
  const xnn::QuantizedRows& quantized() const { return quantized_; }

  // Prepares a row of the input of the product `next`, which reads quantized().
  void MakeReady(const Projection& next, const float* input, size_t row) const {
    next.MakeReady(input, quantized_, row);
  }
  // Prepares its inputs from `begin` up to, but without, `end`, as Projection::MakePartReady does.
  void MakePartReady(const Projection& next, const float* input, size_t begin, size_t end,
                     size_t row) const {
    next.MakePartReady(input, begin, end, quantized_, row);
  }
  // Multiplies the first `rows` rows by the Hadamard matrix of ops/hadamard.h.
  void Rotate(size_t rows) const;
  // Writes the first `rows` rows, normalized with weights of 1, to block_input().
  void NormalizeWithoutWeights(size_t rows) const;
  // Makes the first `rows` rows ready for a block that begins with the product `next`; `norm`,
  // [hidden_size], is null if there is no norm.
  void BeginBlock(size_t rows, const float* norm, const Projection& next) const;
  // Adds the block's output, over all ranks, with `bias` and then normalized by `norm` unless these
  // are null, to the rows, multiplies them by `*scalar` unless it is null, and makes them ready for
  // the next block; `next` is null after the last one.
  Status EndBlock(size_t rows, const float* bias, const float* norm, const float* next_norm,
                  const Projection* next, const float* scalar = nullptr) const;
  // Leaves only `rows`, in ascending order: they become the first rows.
  void Keep(std::span<const uint32_t> rows) const;
  // Writes row `row`, without the rotation and normalized, to the same row of normed().
  void Normalize(size_t row, const float* norm) const;
  // Normalizes row `row` as row `target` of normed(), ready for the product `next`.
  void NormalizeForHead(size_t row, size_t target, const float* norm, const Projection& next) const;

 private:
  void Normalize(const float* input, size_t row, const float* weight, const Projection& next) const;
  // A row of a rotated hidden state as it would be without the rotation, in row `row` of normed_,
  // from where Normalize may read it.
  const float* TurnBack(const float* hidden, size_t row) const;
  float* AddOutput(size_t row, const float* bias, const float* norm) const;

  const size_t size_;
  const float epsilon_;
  const bool has_norms_before_;
  const bool is_rotated_;
  const Workers& workers_;
  RankMath& ranks_;
  float* const hidden_;
  float* const normed_;
  float* const projected_;
  const xnn::QuantizedRows quantized_;
};

}  // namespace cria
