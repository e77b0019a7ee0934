#include "converter/checkpoint/gpt_oss_tensors.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"

namespace cria {
namespace {

// A tensor of all experts behind "model.layers.N.mlp.experts.".
struct GptOssStack {
  std::string_view name;
  bool is_gate_up;
  bool is_bias;
};
constexpr std::array kStacks = {
    GptOssStack{"gate_up_proj", true, false}, GptOssStack{"gate_up_proj_bias", true, true},
    GptOssStack{"down_proj", false, false}, GptOssStack{"down_proj_bias", false, true}};
constexpr std::string_view kOfExperts = "mlp.experts.";
constexpr std::string_view kOfRouter = "mlp.router.";

class GptOssSplitter {
 public:
  explicit GptOssSplitter(Checkpoint& checkpoint)
      : checkpoint_(checkpoint), config_(checkpoint.config) {}

  Status Split() {
    for (auto& [name, source] : std::exchange(checkpoint_.tensors, {})) {
      CRIA_RETURN_IF_ERROR(SplitOne(name, std::move(source)));
    }
    return {};
  }

 private:
  Status SplitOne(const std::string& name, TensorSource source) {
    constexpr std::string_view kLayers = "model.layers.";
    const size_t dot = name.starts_with(kLayers) ? name.find('.', kLayers.size()) : name.npos;
    if (dot == name.npos) return AddTensor(name, std::move(source), checkpoint_);
    const std::string layer = name.substr(0, dot + 1);
    const std::string_view rest = std::string_view(name).substr(dot + 1);
    if (rest.starts_with(kOfRouter)) {
      return AddTensor(Format("{}mlp.gate.{}", layer, rest.substr(kOfRouter.size())),
                       std::move(source), checkpoint_);
    }
    for (const GptOssStack& stack : kStacks) {
      if (rest.starts_with(kOfExperts) && rest.substr(kOfExperts.size()) == stack.name) {
        return SplitStack(layer, stack, source);
      }
    }
    return AddTensor(name, std::move(source), checkpoint_);
  }

  Status SplitStack(const std::string& layer, const GptOssStack& stack,
                    const TensorSource& source) {
    const uint64_t experts = config_.num_experts;
    const uint64_t hidden = config_.hidden_size;
    const uint64_t width = config_.moe_intermediate_size;
    const uint64_t inputs = stack.is_gate_up ? hidden : width;
    const uint64_t outputs = stack.is_gate_up ? 2 * width : hidden;
    // Matrices in blocks are [outputs, inputs].
    const bool is_transposed = !stack.is_bias && BlockFormatOf(source.type) == nullptr;
    const std::vector<uint64_t> wanted = stack.is_bias ? std::vector<uint64_t>{experts, outputs}
                                         : is_transposed
                                             ? std::vector<uint64_t>{experts, inputs, outputs}
                                             : std::vector<uint64_t>{experts, outputs, inputs};
    if (source.shape != wanted) return WrongShape(source, wanted, checkpoint_);
    for (uint64_t expert = 0; expert < experts; ++expert) {
      TensorSource rows = RowsOf(source, expert, 1);
      rows.shape = stack.is_bias ? std::vector{outputs} : std::vector{outputs, inputs};
      rows.is_transposed = is_transposed;
      const std::string module = Format("{}{}{}.", layer, kOfExperts, expert);
      const std::string_view kind = stack.is_bias ? "bias" : "weight";
      if (!stack.is_gate_up) {
        CRIA_RETURN_IF_ERROR(AddTensor(Format("{}down_proj.{}", module, kind), rows, checkpoint_));
        continue;
      }
      CRIA_RETURN_IF_ERROR(AddTensor(Format("{}gate_proj.{}", module, kind),
                                     ChooseRows(rows, {.period = 2, .first = 0, .count = 1}),
                                     checkpoint_));
      CRIA_RETURN_IF_ERROR(AddTensor(Format("{}up_proj.{}", module, kind),
                                     ChooseRows(rows, {.period = 2, .first = 1, .count = 1}),
                                     checkpoint_));
    }
    return {};
  }

  Checkpoint& checkpoint_;
  const ModelConfig& config_;
};

}  // namespace

Status SplitGptOssTensors(Checkpoint& checkpoint) { return GptOssSplitter(checkpoint).Split(); }

}  // namespace cria
