#include "converter/calibrate/scheme_options.h"

#include <algorithm>
#include <utility>

#include "core/format.h"

namespace cria {
namespace {

// From the option that a matrix has to a larger one that costs less.
struct Step {
  size_t matrix = 0;
  size_t option = 0;
  uint64_t bytes = 0;  // How many it adds.
  double saved = 0.0;  // Cost, for each of these bytes.
};

// The step with up to `room` bytes that saves most for each of them; of no bytes if there is none.
Step BestStep(const std::vector<MatrixOptions>& matrices, const std::vector<size_t>& chosen,
              uint64_t room) {
  Step best;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const SchemeOption& now = matrices[i].options[chosen[i]];
    for (size_t option = 0; option < matrices[i].options.size(); ++option) {
      const SchemeOption& next = matrices[i].options[option];
      if (next.bytes() <= now.bytes() || next.cost >= now.cost) continue;
      const uint64_t bytes = next.bytes() - now.bytes();
      const double saved = (now.cost - next.cost) / static_cast<double>(bytes);
      if (bytes <= room && saved > best.saved) best = {i, option, bytes, saved};
    }
  }
  return best;
}

// Takes the same option for all matrices if one has room and costs less than what is chosen,
// because steps that are each the best can end there.
void TakeCheaperUniform(const std::vector<MatrixOptions>& matrices, uint64_t max_bytes,
                        std::vector<size_t>& chosen) {
  const auto total = [&](const auto& choice_of) {
    std::pair<uint64_t, double> bytes_and_cost = {};
    for (size_t i = 0; i < matrices.size(); ++i) {
      const SchemeOption& option = matrices[i].options[choice_of(i)];
      bytes_and_cost.first += option.bytes();
      bytes_and_cost.second += option.cost;
    }
    return bytes_and_cost;
  };
  double lowest = total([&](size_t i) { return chosen[i]; }).second;
  size_t num_options = matrices.empty() ? 0 : matrices.front().options.size();
  for (const MatrixOptions& matrix : matrices) {
    num_options = std::min(num_options, matrix.options.size());
  }
  for (size_t option = 0; option < num_options; ++option) {
    const auto [bytes, cost] = total([option](size_t) { return option; });
    if (bytes > max_bytes || cost >= lowest) continue;
    lowest = cost;
    std::ranges::fill(chosen, option);
  }
}

}  // namespace

std::vector<MatrixOptions> AllSchemeOptions(const FilePlan& plan, ChosenMatrices which) {
  std::vector<MatrixOptions> matrices;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorSpec& spec = plan.tensors[i].stored.spec;
    if (spec.is_always_f32()) continue;
    if (spec.layer == kNoLayer && which == ChosenMatrices::kLayers) continue;
    MatrixOptions matrix = {.tensor = i};
    for (const Scheme scheme : kOptionSchemes) {
      matrix.options.push_back({.layout = MakeTensorLayout(spec, scheme, 0)});
    }
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

Result<std::vector<size_t>> ChooseOptions(const std::vector<MatrixOptions>& matrices,
                                          uint64_t max_bytes) {
  std::vector<size_t> chosen;
  uint64_t bytes = 0;
  for (const MatrixOptions& matrix : matrices) {
    const auto smallest = std::ranges::min_element(
        matrix.options, {},
        [](const SchemeOption& option) { return std::pair(option.bytes(), option.cost); });
    chosen.push_back(static_cast<size_t>(smallest - matrix.options.begin()));
    bytes += smallest->bytes();
  }
  if (bytes > max_bytes) {
    return Fail(ErrorCode::kUsage,
                Format("the matrices take at least {} bytes, and the target leaves {} for them",
                       bytes, max_bytes));
  }
  while (true) {
    const Step step = BestStep(matrices, chosen, max_bytes - bytes);
    if (step.bytes == 0) break;
    bytes += step.bytes;
    chosen[step.matrix] = step.option;
  }
  TakeCheaperUniform(matrices, max_bytes, chosen);
  return chosen;
}

}  // namespace cria
