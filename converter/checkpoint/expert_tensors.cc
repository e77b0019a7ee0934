#include "converter/checkpoint/expert_tensors.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"

namespace cria {
namespace {

struct Renaming {
  std::string_view from;
  std::string_view to;
};
// Names of tensors behind "model.layers.N.".
constexpr std::array kRouters = {
    Renaming{"block_sparse_moe.gate.weight", "mlp.gate.weight"},
    Renaming{"block_sparse_moe.router.layer.weight", "mlp.gate.weight"},
    Renaming{"shared_mlp.output_linear.weight", "mlp.shared_expert.down_proj.weight"}};
// Names of tensors behind "model.layers.N.block_sparse_moe.experts.E.".
constexpr std::array kMixtralMatrices = {Renaming{"w1.weight", "gate_proj.weight"},
                                         Renaming{"w3.weight", "up_proj.weight"},
                                         Renaming{"w2.weight", "down_proj.weight"}};
constexpr std::string_view kMixtralExperts = "block_sparse_moe.experts.";

// A tensor whose rows are those of these matrices, for each expert, or for the shared one; or their
// biases.
struct Stack {
  std::string_view name;
  std::vector<std::string_view> matrices;
  bool is_shared = false;
  bool is_bias = false;
};

class Normalizer {
 public:
  explicit Normalizer(Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  Status Normalize() {
    const std::vector<Stack> stacks = {
        {"block_sparse_moe.input_linear.weight", {"gate_proj", "up_proj"}},
        {"block_sparse_moe.output_linear.weight", {"down_proj"}},
        {"mlp.experts.gate_up_proj", {"gate_proj", "up_proj"}},
        {"mlp.experts.down_proj", {"down_proj"}},
        {"mlp.experts.gate_proj.weight", {"gate_proj"}},
        {"mlp.experts.up_proj.weight", {"up_proj"}},
        {"mlp.experts.down_proj.weight", {"down_proj"}},
        {"mlp.experts.gate_proj.bias", {"gate_proj"}, false, true},
        {"mlp.experts.up_proj.bias", {"up_proj"}, false, true},
        {"mlp.experts.down_proj.bias", {"down_proj"}, false, true},
        {"shared_mlp.input_linear.weight", {"gate_proj", "up_proj"}, true}};
    TensorSources before = std::exchange(checkpoint_.tensors, {});
    for (auto& [name, source] : before) {
      const size_t begin = EndOfLayer(name);
      const std::string_view rest = std::string_view(name).substr(begin);
      const Stack* stack = nullptr;
      for (const Stack& known : stacks) {
        if (begin != 0 && rest == known.name) stack = &known;
      }
      const std::string layer = name.substr(0, begin);
      CRIA_RETURN_IF_ERROR(stack == nullptr ? AddTensor(begin == 0 ? name : layer + Renamed(rest),
                                                        std::move(source), checkpoint_)
                                            : Split(layer, *stack, std::move(source)));
    }
    return {};
  }

 private:
  // The length of "model.layers.N.", or 0.
  static size_t EndOfLayer(std::string_view name) {
    constexpr std::string_view kLayers = "model.layers.";
    if (!name.starts_with(kLayers)) return 0;
    const size_t dot = name.find('.', kLayers.size());
    return dot == std::string_view::npos ? 0 : dot + 1;
  }

  static std::string Renamed(std::string_view rest) {
    for (const Renaming& renaming : kRouters) {
      if (rest == renaming.from) return std::string(renaming.to);
    }
    if (!rest.starts_with(kMixtralExperts)) return std::string(rest);
    const size_t dot = rest.find('.', kMixtralExperts.size());
    if (dot == std::string_view::npos) return std::string(rest);
    for (const Renaming& renaming : kMixtralMatrices) {
      if (rest.substr(dot + 1) != renaming.from) continue;
      return Format("mlp.experts.{}.{}",
                    rest.substr(kMixtralExperts.size(), dot - kMixtralExperts.size()), renaming.to);
    }
    return std::string(rest);
  }

  Status Split(const std::string& layer, const Stack& stack, TensorSource source) {
    const ModelConfig& config = checkpoint_.config;
    const uint64_t experts = stack.is_shared ? 1 : config.num_experts;
    const uint64_t width =
        stack.is_shared ? config.shared_expert_intermediate_size : config.moe_intermediate_size;
    const bool is_down = stack.matrices.front() == "down_proj";
    const uint64_t rows = is_down ? config.hidden_size : width;
    const uint64_t columns = is_down ? width : config.hidden_size;
    std::vector<uint64_t> wanted = {rows * stack.matrices.size(), columns};
    if (stack.is_bias) wanted.pop_back();
    if (!stack.is_shared) wanted.insert(wanted.begin(), experts);
    if (source.shape != wanted) return WrongShape(source, wanted, checkpoint_);
    source.shape = {experts * stack.matrices.size() * rows};
    if (!stack.is_bias) source.shape.push_back(columns);
    const std::string_view kind = stack.is_bias ? "bias" : "weight";
    uint64_t first_row = 0;
    for (uint64_t expert = 0; expert < experts; ++expert) {
      const std::string module =
          stack.is_shared ? "mlp.shared_expert" : Format("mlp.experts.{}", expert);
      for (const std::string_view matrix : stack.matrices) {
        CRIA_RETURN_IF_ERROR(AddTensor(Format("{}{}.{}.{}", layer, module, matrix, kind),
                                       RowsOf(source, first_row, rows), checkpoint_));
        first_row += rows;
      }
    }
    return {};
  }

  Checkpoint& checkpoint_;
};

}  // namespace

Status NormalizeExpertTensors(Checkpoint& checkpoint) {
  if (checkpoint.config.num_experts == 0) return {};
  return Normalizer(checkpoint).Normalize();
}

}  // namespace cria
