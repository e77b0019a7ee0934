#include "decode/projection.h"

#include <algorithm>

#include "core/numeric.h"
#include "model/tensor_table.h"
#include "ops/quantized_blocks.h"

namespace cria {

size_t QuantizedRowStride(size_t channels) {
  constexpr size_t kLineBytes = 64;
  const size_t padded = DivideRoundingUp(channels, kMaxPaddedBlock) * kMaxPaddedBlock;
  return (DivideRoundingUp(ops::QuantizedBlocks::Bytes(padded), kLineBytes) | 1) * kLineBytes;
}

size_t Projection::output_channels() const {
  size_t channels = 0;
  for (const Piece& piece : pieces_) channels += piece.linear->layout().output_channels;
  return channels;
}

Status Projection::Run(size_t rows, OperatorKind kind, const Workers& workers) const {
  const ThreadPool& pool = workers.PoolFor(rows);
  for (const Piece& piece : pieces_) {
    CRIA_RETURN_IF_ERROR(piece.linear->Run(piece.packed, rows, pool));
  }
  workers.Count(kind);
  return {};
}

Status Projection::RunStored(size_t rows, const xnn::OutputRange& stored,
                             std::span<const uint32_t> kept, OperatorKind kind,
                             const Workers& workers) const {
  const ThreadPool& pool = workers.PoolFor(rows);
  size_t first = 0;
  for (const Piece& piece : pieces_) {
    const size_t outputs = piece.linear->layout().output_channels;
    const auto within = [&](size_t output) { return std::clamp(output, first, first + outputs); };
    const xnn::OutputRange range = {within(stored.begin) - first, within(stored.end) - first};
    CRIA_RETURN_IF_ERROR(piece.linear->RunStored(piece.packed, rows, range, kept, pool));
    first += outputs;
  }
  workers.Count(kind);
  return {};
}

Status Projection::RunGroups(std::span<const ops::RowGroup> groups, size_t rows, OperatorKind kind,
                             const Workers& workers) const {
  const Status product = pieces_.front().linear->RunGroups(groups, workers.PoolFor(rows));
  workers.Count(kind);
  return product;
}

}  // namespace cria
