#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// Rows of a tensor of the model, and where they come from.
struct MappedPart {
  const TensorSource* source = nullptr;  // In the checkpoint.
  // What rows and columns are multiplied by; empty: by 1. A vector is one row.
  std::vector<float> row_factors = {};
  std::vector<float> column_factors = {};
  // Whether rows are rotated (RotateRows) after that, and what the columns are then multiplied by.
  bool is_rotated = false;
  std::vector<float> rotated_column_factors = {};
};

// Multiplies what the columns, or the rows, of the part's result are multiplied by.
void MultiplyColumns(std::span<const float> factors, MappedPart& part);
void MultiplyRows(std::span<const float> factors, MappedPart& part);

// A tensor of the model: the rows of `parts`, one part after another.
struct MappedTensor {
  TensorSpec spec;
  std::vector<MappedPart> parts = {};
};

// Multiplies rows of the part, [rows, columns] from `first_row` on, by its factors, and rotates
// them. What would exceed the largest float becomes it.
void ApplyFactors(const MappedPart& part, uint64_t first_row, size_t columns,
                  std::span<float> values);

// Finds every tensor of the checkpoint's configuration, in the order of ExpectedTensors, and checks
// the shapes. The source of a tied head is the embedding. Fails if the checkpoint has a tensor that
// the model does not use, because without it the model would compute something else.
Result<std::vector<MappedTensor>> MapTensors(const Checkpoint& checkpoint);

}  // namespace cria
