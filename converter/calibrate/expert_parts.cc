#include "converter/calibrate/expert_parts.h"

#include <cstddef>
#include <utility>

namespace cria {

std::vector<PlannedTensor> SplitExperts(const PlannedTensor& tensor) {
  const size_t num_experts = tensor.stored.spec.num_parts;
  const size_t parts_each = tensor.parts.size() / num_experts;
  std::vector<PlannedTensor> experts;
  experts.reserve(num_experts);
  for (size_t i = 0; i < num_experts; ++i) {
    PlannedTensor expert = {.stored = {.spec = tensor.stored.spec},
                            .section = tensor.section,
                            .rotates_outputs = tensor.rotates_outputs,
                            .encoded = tensor.encoded};
    expert.stored.spec.output_channels /= num_experts;
    expert.stored.spec.num_parts = 1;
    const TensorLayout& layout = expert.stored.layout = tensor.stored.layout.Part();
    expert.stored.data.bytes = layout.data_bytes();
    expert.stored.scales.bytes = layout.scale_bytes();
    const auto first = tensor.parts.begin() + static_cast<ptrdiff_t>(i * parts_each);
    expert.parts.assign(first, first + static_cast<ptrdiff_t>(parts_each));
    if (expert.encoded) {
      expert.encoded->data_offset += i * layout.data_bytes();
      expert.encoded->scale_offset += i * layout.scale_bytes();
      if (num_experts > 1) expert.encoded->error = {};
    }
    experts.push_back(std::move(expert));
  }
  return experts;
}

void JoinExperts(std::span<PlannedTensor> experts, PlannedTensor& tensor) {
  tensor.parts.clear();
  if (tensor.encoded) tensor.encoded->error = {};
  for (PlannedTensor& expert : experts) {
    for (MappedPart& part : expert.parts) tensor.parts.push_back(std::move(part));
    if (tensor.encoded) tensor.encoded->error += expert.encoded->error;
  }
}

}  // namespace cria
