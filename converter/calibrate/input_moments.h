#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"
#include "model/tensor_table.h"

namespace cria {

// What outputs a matrix should have.
enum class OutputKind : uint8_t {
  kProducts,         // The checkpoint's matrix times its inputs.
  kUnknownProducts,  // The same, but they are not given.
  kOthers,
};

// As many inputs as a part has at most, if there can be several.
inline constexpr size_t kMaxPartInputs = 2048;

// Some of a matrix's inputs, which follow each other.
struct InputPart {
  size_t first = 0;
  size_t count = 0;
  // The mean of x * transposed x, [count, count], for these inputs x.
  Matrix moments;
};

// Second moments of the inputs of a matrix over the rows that were added, and of its inputs with
// what is lacking: in its outputs, or in its inputs if outputs are products, and more than inputs
// or not given. These are then fewer, and the matrix times what its inputs lack is what its outputs
// do.
//
// Many inputs are taken in parts, as if those of different parts were not correlated: it takes a
// fraction of the time and memory, and a text shows too little of so many correlations to lose
// much.
class InputMoments {
 public:
  // For a matrix of this layout.
  InputMoments(const TensorLayout& layout, OutputKind output_kind);

  // Whether what the inputs lack is added, and not what the outputs lack.
  bool takes_inputs() const { return takes_inputs_; }
  // Adds rows of inputs [rows, input_channels], and of what is lacking, [rows, input_channels] or
  // [rows, output_channels].
  void Add(const ThreadPool& threads, ConstMatrixView inputs, ConstMatrixView lacking);
  // Turns the sums into means. Call it once, after the last row.
  void Finish(const ThreadPool& threads);

  size_t num_rows() const { return num_rows_; }
  const std::vector<InputPart>& parts() const { return parts_; }
  std::vector<InputPart> TakeParts() { return std::move(parts_); }
  // The mean of l * transposed x for the inputs x and what is lacking, l: [input_channels,
  // input_channels] or [output_channels, input_channels].
  const Matrix& lacking() const { return lacking_; }
  Matrix TakeLacking() { return std::move(lacking_); }

 private:
  bool takes_inputs_;
  std::vector<InputPart> parts_;
  Matrix lacking_;
  size_t num_rows_ = 0;
};

}  // namespace cria
