#include "converter/calibrate/scheme_options.h"

#include <algorithm>
#include <optional>
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
Step BestStep(const std::vector<MatrixOptions>& matrices, const OptionChoice& choice,
              uint64_t room) {
  Step best;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const SchemeOption& now = matrices[i].options[choice[i]];
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

struct Total {
  uint64_t bytes = 0;
  double cost = 0.0;
};

Total TotalOf(const std::vector<MatrixOptions>& matrices, const OptionChoice& choice) {
  Total total;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const SchemeOption& option = matrices[i].options[choice[i]];
    total.bytes += option.bytes();
    total.cost += option.cost;
  }
  return total;
}

void TakeBestSteps(const std::vector<MatrixOptions>& matrices, uint64_t max_bytes,
                   OptionChoice& choice) {
  uint64_t room = max_bytes - TotalOf(matrices, choice).bytes;
  while (true) {
    const Step step = BestStep(matrices, choice, room);
    if (step.bytes == 0) break;
    room -= step.bytes;
    choice[step.matrix] = step.option;
  }
}

// How many options every matrix has.
size_t NumCommonOptions(const std::vector<MatrixOptions>& matrices) {
  size_t count = matrices.empty() ? 0 : matrices.front().options.size();
  for (const MatrixOptions& matrix : matrices) count = std::min(count, matrix.options.size());
  return count;
}

// Each of the options that all matrices can have, chosen for all.
std::vector<OptionChoice> SameForAll(const std::vector<MatrixOptions>& matrices) {
  const size_t num_options = NumCommonOptions(matrices);
  std::vector<OptionChoice> choices;
  choices.reserve(num_options);
  for (size_t option = 0; option < num_options; ++option) {
    choices.emplace_back(matrices.size(), option);
  }
  return choices;
}

// The best choice with only two options: the largest one that has room if all matrices have it, and
// the next larger one. Options that cost more than a smaller one do not count. Absent if none has
// room for all matrices.
std::optional<OptionChoice> ChooseOfTwo(const std::vector<MatrixOptions>& matrices,
                                        uint64_t max_bytes) {
  std::vector<OptionChoice> same = SameForAll(matrices);
  std::ranges::sort(same, {},
                    [&](const OptionChoice& choice) { return TotalOf(matrices, choice).bytes; });
  std::optional<OptionChoice> smaller;
  std::optional<OptionChoice> larger;
  for (OptionChoice& choice : same) {
    const Total total = TotalOf(matrices, choice);
    if (smaller && total.cost >= TotalOf(matrices, *smaller).cost) continue;
    if (total.bytes > max_bytes) {
      larger = std::move(choice);
      break;
    }
    smaller = std::move(choice);
  }
  if (!smaller || !larger) return smaller;
  std::vector<MatrixOptions> of_two = matrices;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const std::vector<SchemeOption>& options = matrices[i].options;
    of_two[i].options = {options[(*smaller)[i]], options[(*larger)[i]]};
  }
  OptionChoice chosen(matrices.size(), 0);
  TakeBestSteps(of_two, max_bytes, chosen);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == 1) (*smaller)[i] = (*larger)[i];
  }
  return smaller;
}

}  // namespace

std::vector<MatrixOptions> AllSchemeOptions(const FilePlan& plan, ChosenMatrices which) {
  std::vector<MatrixOptions> matrices;
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorSpec& spec = plan.tensors[i].stored.spec;
    if (spec.is_always_f32() || spec.is_of_mtp) continue;
    if (spec.layer == kNoLayer && which == ChosenMatrices::kLayers) continue;
    MatrixOptions matrix = {.tensor = i};
    for (const Scheme scheme : kOptionSchemes) {
      matrix.options.push_back({.layout = MakeTensorLayout(spec, scheme, 0)});
    }
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

Result<std::vector<OptionChoice>> ChooseOptions(const std::vector<MatrixOptions>& matrices,
                                                uint64_t max_bytes) {
  OptionChoice cheapest;
  for (const MatrixOptions& matrix : matrices) {
    const auto smallest = std::ranges::min_element(
        matrix.options, {},
        [](const SchemeOption& option) { return std::pair(option.bytes(), option.cost); });
    cheapest.push_back(static_cast<size_t>(smallest - matrix.options.begin()));
  }
  const uint64_t least_bytes = TotalOf(matrices, cheapest).bytes;
  if (least_bytes > max_bytes) {
    return Fail(ErrorCode::kUsage,
                Format("the matrices take at least {} bytes, and the target leaves {} for them",
                       least_bytes, max_bytes));
  }
  TakeBestSteps(matrices, max_bytes, cheapest);
  for (OptionChoice& choice : SameForAll(matrices)) {
    if (TotalOf(matrices, choice).bytes > max_bytes) continue;
    TakeBestSteps(matrices, max_bytes, choice);
    if (TotalOf(matrices, choice).cost < TotalOf(matrices, cheapest).cost) {
      cheapest = std::move(choice);
    }
  }
  std::vector<OptionChoice> choices = {std::move(cheapest)};
  std::optional<OptionChoice> of_two = ChooseOfTwo(matrices, max_bytes);
  if (of_two && *of_two != choices.front()) choices.push_back(*std::move(of_two));
  return choices;
}

}  // namespace cria
