#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria::xnn {

// XNNPACK multiplies by weights that it has rearranged for its kernels on this processor. Here it
// packs them into memory of ours, from where a Linear takes them.

// A matrix as it lies in a model file, or some of its rows. XNNPACK may read kReadableSlackBytes
// past the end of `data`.
struct LinearWeights {
  TensorLayout layout;
  std::span<const std::byte> data;
  std::span<const std::byte> scales;  // float for kQc8w, bf16 for kQb4w, empty for kF32.
};

// Where packed weights must begin.
inline constexpr size_t kPackedAlignment = 64;

// Bytes that a matrix of this layout takes when it is packed on this processor. Reads no weights.
Result<uint64_t> PackedBytes(const TensorLayout& layout);

// The same of every matrix of a model.
Result<std::vector<uint64_t>> PackedBytes(std::span<const TensorLayout> layouts);

// Packs all of `weights` into `packed`, of exactly PackedBytes zeros. May run for several matrices
// at once. Scales that XNNPACK cannot use are an error.
Status Pack(const LinearWeights& weights, std::span<std::byte> packed);

// How many of `rows_left` rows, the last ones of a matrix of this layout, to pack next, so that
// slices of about `most_bytes` or less, laid one behind another, make up the packed matrix.
size_t NextSliceRows(const TensorLayout& layout, size_t rows_left, uint64_t most_bytes);
// Bytes of the largest of these slices: the last may be larger than the others, and rows may be so
// long that the fewest that make a slice are.
uint64_t LargestSliceBytes(const TensorLayout& layout, uint64_t most_bytes);

// What tells layouts of packed weights apart: by scheme, a hash of one fixed matrix as it is
// packed.
using SchemeFingerprints = std::array<uint64_t, kNumSchemes>;

// Those of this processor. Fails with kInternal where slices of rows do not make up the whole.
Result<SchemeFingerprints> FingerprintSchemes();

// One number for all schemes.
uint64_t LayoutFingerprint(const SchemeFingerprints& fingerprints);
Result<uint64_t> LayoutFingerprint();

}  // namespace cria::xnn
