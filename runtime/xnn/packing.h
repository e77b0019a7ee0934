#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "model/file_layout.h"
#include "model/tensor_table.h"

namespace cria::xnn {

// XNNPACK multiplies by weights that it has rearranged for its kernels on this processor. These
// functions let it pack them into our memory, which a Linear reads. Matrices of a BlockFormat
// become BlockTiles, which are the same on every processor.

// A matrix as it is stored in a model file, or some of its rows. XNNPACK may read
// kReadableSlackBytes after the end of `data`.
struct LinearWeights {
  TensorLayout layout;
  std::span<const std::byte> data;
  std::span<const std::byte> scales;  // float for kQc8w, bf16 for kQb4w, empty for kF32.
};

// Alignment of packed weights.
inline constexpr size_t kPackedAlignment = 64;

// Bytes from one packed part of a matrix with this layout to the next, if a part itself takes
// `part_bytes`.
uint64_t PackedPartStride(const TensorLayout& layout, uint64_t part_bytes);

// Bytes of a matrix with this layout after packing on this processor. Reads no weights. Parts are
// equally many bytes apart.
Result<uint64_t> PackedBytes(const TensorLayout& layout);

// Returns the bytes of every matrix of a model.
Result<std::vector<uint64_t>> PackedBytes(std::span<const TensorLayout> layouts);

// Packs all of `weights`, which have one part, into `packed`, which must be exactly PackedBytes of
// zeros. May be called for several matrices at once. Fails if XNNPACK cannot use a scale.
Status Pack(const LinearWeights& weights, std::span<std::byte> packed);

// The number of rows to pack next if `rows_left` rows at the end of a part are left. The slices
// have `max_bytes` or less if possible; concatenated, they are the packed part.
size_t NextSliceRows(const TensorLayout& layout, size_t rows_left, uint64_t max_bytes);
// Bytes of the largest of these slices. It may be more than `max_bytes`, because the last slice
// may be larger than the others, and because a slice has a minimum number of rows.
uint64_t LargestSliceBytes(const TensorLayout& layout, uint64_t max_bytes);

// Distinguishes layouts of packed weights: for each of XNNPACK's schemes, a hash of one fixed
// matrix after packing.
using SchemeFingerprints = std::array<uint64_t, kNumXnnpackSchemes>;

// The fingerprints of this processor. Fails with kInternal if concatenated slices are not the same
// as the whole packed matrix.
Result<SchemeFingerprints> FingerprintSchemes();

// One number for all schemes together.
uint64_t LayoutFingerprint(const SchemeFingerprints& fingerprints);
Result<uint64_t> LayoutFingerprint();

}  // namespace cria::xnn
