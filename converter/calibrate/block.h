#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "converter/write/file_plan.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/config.h"

namespace cria {

// Half a layer, or one expert: a norm, if there is one, a matrix that reads it, what the model
// computes of these products, and a matrix that reads that and whose products, or their norm, are
// added to the hidden rows; those of an expert with a weight for each row.
struct Block {
  PlannedTensor* norm;         // The inputs' norm, or null.
  PlannedTensor* output_norm;  // Or null.
  PlannedTensor* first;
  PlannedTensor* first_bias;  // Null if the model has none, as is second_bias.
  PlannedTensor* second;
  PlannedTensor* second_bias;
  size_t inner_channels;  // How many the second matrix reads.
  // From products with their bias, [rows, channels], which it overwrites, and those with `gate`,
  // [rows, rows of gate], to output [rows, inner_channels].
  std::function<void(MatrixView products, ConstMatrixView gates, MatrixView output)> inner;
  // A small matrix that reads what the first one reads, too; null if there is none.
  PlannedTensor* gate = nullptr;
  // What the hidden rows are multiplied by after the outputs are added; null: by 1.
  PlannedTensor* scalar = nullptr;
};

// Fails with kUnsupported if the model has layers that calibration does not know.
Status CheckModelCalibrates(const ModelConfig& config);
// The same, and also if this processor lacks the instructions that linear algebra is compiled for.
Status CheckCalibrates(const ModelConfig& config);

// A matrix, or a vector as one column, with its factors, in f32.
Result<Matrix> ReadMatrix(const PlannedTensor& tensor);
// Empty for null.
Result<std::vector<float>> ReadVector(const PlannedTensor* tensor);

// x [rows, inputs] * transposed weights [outputs, inputs].
Matrix Multiply(const ThreadPool& threads, const Matrix& x, const Matrix& weights);

}  // namespace cria
