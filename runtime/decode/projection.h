#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cria/error.h"
#include "decode/profile.h"
#include "decode/workers.h"
#include "ops/products/tiled_product.h"
#include "xnn/linear.h"

namespace cria {

// Bytes from one row of quantized activations to the next, for rows of `channels` inputs: enough
// for every form and the padding of every scheme. It is an odd number of cache lines, because rows
// whose distance is a power of two would compete for the same few places in the first-level cache.
size_t QuantizedRowStride(size_t channels);

// A matrix of a layer and how rows are multiplied by it: all products of the decoder run here. A
// matrix may be stored in pieces, whose outputs follow one another, and which all read their input
// in the same form. The Linear of a piece says in which buffers inputs and outputs are.
class Projection {
 public:
  // Adds the next piece. Both must outlive the object.
  void AddPiece(xnn::Linear& linear, std::span<const std::byte> packed) {
    pieces_.push_back({&linear, packed});
  }

  // The form in which all pieces read their input.
  xnn::InputForm input_form() const { return pieces_.front().linear->input_form(); }
  // The outputs of all pieces together.
  size_t output_channels() const;

  // Prepares a row of the input: quantizes it as row `row` of `quantized`, those of the buffers, if
  // the weights need that. Called by the function that writes the row, while the row is in a cache.
  void MakeReady(const float* input, const xnn::QuantizedRows& quantized, size_t row) const {
    pieces_.front().linear->Quantize(input, quantized, row);
  }
  // Prepares the inputs from `begin` to `end` of a row, as xnn::Linear::QuantizePart does.
  void MakePartReady(const float* input, size_t begin, size_t end,
                     const xnn::QuantizedRows& quantized, size_t row) const {
    pieces_.front().linear->QuantizePart(input, begin, end, quantized, row);
  }
  // Multiplies the first `rows` rows of the input, which are ready.
  Status Run(size_t rows, OperatorKind kind, const Workers& workers) const;
  // As Run, but the outputs that are not in `stored` are computed only for `kept` of the rows, in
  // ascending order, as far as xnn::Linear::RunStored saves that.
  Status RunStored(size_t rows, const xnn::OutputRange& stored, std::span<const uint32_t> kept,
                   OperatorKind kind, const Workers& workers) const;

  // For a matrix in one piece of `num_parts` equal parts, each packed by itself: one of them.
  std::span<const std::byte> Part(size_t part, size_t num_parts) const {
    const std::span<const std::byte> packed = pieces_.front().packed;
    const size_t bytes = packed.size() / num_parts;
    return packed.subspan(part * bytes, bytes);
  }
  // Multiplies groups of rows by parts, as xnn::Linear::RunGroups does. `rows` decides how many
  // threads do so.
  Status RunGroups(std::span<const ops::RowGroup> groups, size_t rows, OperatorKind kind,
                   const Workers& workers) const;

 private:
  struct Piece {
    xnn::Linear* linear;
    std::span<const std::byte> packed;
  };

  std::vector<Piece> pieces_;
};

}  // namespace cria
