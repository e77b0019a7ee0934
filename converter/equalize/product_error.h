#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "converter/write/file_plan.h"
#include "cria/error.h"

namespace cria {

// Which rows of a matrix stand for all of them: `count` of `num_rows`, evenly spaced.
std::vector<uint64_t> SampleRows(uint64_t num_rows, size_t count);

// Rows of a matrix, [rows, columns].
struct SampledRows {
  std::vector<float> values;
  size_t columns = 0;
  TensorLayout layout;  // The matrix's layout.
};

// Reads these rows of a part, with its factors.
Result<SampledRows> ReadRows(const PlannedTensor& tensor, const MappedPart& part,
                             std::span<const uint64_t> rows);

// The expected squared error of products with these rows, in relation to the products' own squares:
// that of the weights, stored in the matrix's scheme, and that of the inputs, stored in int8 with
// one scale for a token. `input_rms` [columns] are the sizes of the inputs, which are taken as
// independent and normally distributed.
double RelativeProductError(const SampledRows& rows, std::span<const float> input_rms);

}  // namespace cria
