#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "converter/write/file_plan.h"
#include "cria/error.h"
#include "model/tensor_table.h"

namespace cria {

// A way to store a matrix, and what it costs.
struct SchemeOption {
  TensorLayout layout;
  double cost = 0.0;

  uint64_t bytes() const { return layout.data_bytes() + layout.scale_bytes(); }
};

// The ways to store one matrix of a layer, or of one kind those of all experts, or a table: int8,
// int4, and then the other numbers of bits.
inline constexpr Scheme kOptionSchemes[] = {Scheme::kQc8w,  Scheme::kW4G64, Scheme::kW2G64,
                                            Scheme::kW3G64, Scheme::kW5G64, Scheme::kW6G64};
struct MatrixOptions {
  size_t tensor = 0;  // Its index in the plan.
  std::vector<SchemeOption> options;
};

// What was chosen for a matrix.
struct SchemeChoice {
  std::string name;  // The matrix's name.
  std::vector<SchemeOption> options;
  size_t chosen = 0;
};

// Which matrices have a choice.
enum class ChosenMatrices : uint8_t {
  kLayers,
  kLayersAndTables,  // The embedding table comes first, and a head of its own last.
};

// The choices for the matrices, without costs, in the order of the plan.
std::vector<MatrixOptions> AllSchemeOptions(const FilePlan& plan,
                                            ChosenMatrices which = ChosenMatrices::kLayers);

// The numbers of the options that were chosen, one for each matrix.
using OptionChoice = std::vector<size_t>;

// What to choose for the matrices if they may take at most `max_bytes` together. The first choice
// has the smallest sum of costs that was found. Costs are those of matrices that are changed alone,
// so where they are large, their sum says little about what a model loses. Therefore, there is a
// second choice, unless it is the same or has no room: the best with only two options, the largest
// one that all matrices can have and the next larger one. Choices begin with the smallest options,
// or with the same one for all, and take the steps that save most cost for each byte and have room.
// Fails with kUsage if there is no room for the smallest options.
Result<std::vector<OptionChoice>> ChooseOptions(const std::vector<MatrixOptions>& matrices,
                                                uint64_t max_bytes);

}  // namespace cria
