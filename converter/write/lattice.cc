#include "converter/write/lattice.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "converter/quantize/row_quantizer.h"

namespace cria {
namespace {

constexpr size_t kRowsOfTensor = 8;
// Rounding weights to bf16 changes them by at most 1/256 each, and by 1/700 in the mean; rounding
// any others to Q4_0 by about 1/12.
constexpr double kMostRelativeError = 1.0 / 256;

bool IsQuantizedMatrix(const PlannedTensor& tensor) {
  return tensor.stored.spec.is_of_own_layer() && !tensor.stored.spec.is_always_f32();
}

// Whether some rows of the part, evenly spaced, lose nearly nothing in the layout.
Result<bool> LosesNothing(const MappedPart& part, const TensorLayout& layout) {
  const size_t columns = layout.input_channels;
  const uint64_t num_rows = part.source->num_elements() / columns;
  TensorReader reader;
  RowQuantizer quantizer(layout);
  std::vector<float> row(layout.padded_input_channels);
  std::vector<std::byte> data(layout.row_bytes());
  QuantizationError error;
  for (uint64_t i = 0; i < std::min<uint64_t>(kRowsOfTensor, num_rows); ++i) {
    const uint64_t index = i * num_rows / std::min<uint64_t>(kRowsOfTensor, num_rows);
    const auto values = std::span(row).first(columns);
    CRIA_RETURN_IF_ERROR(reader.Read(*part.source, index * columns, values));
    ApplyFactors(part, index, columns, values);
    error += quantizer.Quantize(row, data, {});
  }
  return error.squared_error <= kMostRelativeError * kMostRelativeError * error.squared_weights;
}

}  // namespace

Result<bool> AreOnQ40Lattice(const FilePlan& plan) {
  bool are_any = false;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (!IsQuantizedMatrix(tensor)) continue;
    const TensorLayout layout = MakeTensorLayout(tensor.stored.spec, Scheme::kQ4_0, 0);
    for (const MappedPart& part : tensor.parts) {
      CRIA_ASSIGN_OR_RETURN(const bool loses_nothing, LosesNothing(part, layout));
      if (!loses_nothing) return false;
      are_any = true;
    }
  }
  return are_any;
}

void TakeQ40(FilePlan& plan) {
  for (PlannedTensor& tensor : plan.tensors) {
    if (!IsQuantizedMatrix(tensor)) continue;
    Apply(MakeTensorLayout(tensor.stored.spec, Scheme::kQ4_0, 0), tensor);
  }
}

}  // namespace cria
