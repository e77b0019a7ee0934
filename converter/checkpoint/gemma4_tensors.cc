#include "converter/checkpoint/gemma4_tensors.h"

#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

class Fitter {
 public:
  Fitter(Checkpoint& checkpoint, KeysAsValues keys_as_values)
      : checkpoint_(checkpoint), config_(checkpoint.config), keys_as_values_(keys_as_values) {}

  Status Fit() {
    CRIA_RETURN_IF_ERROR(SplitTable());
    for (size_t layer = 0; layer < config_.num_hidden_layers; ++layer) {
      const LayerKind& kind = config_.layer_kind(layer);
      if (!kind.stores_tokens()) {
        LeaveOutKeysAndValues(layer);
      } else if (keys_as_values_ == KeysAsValues::kWhereMissing ||
                 (keys_as_values_ == KeysAsValues::kWithoutWindow && kind.sliding_window == 0)) {
        CRIA_RETURN_IF_ERROR(RepeatKeys(layer));
      }
      if (config_.enable_moe_block && config_.is_mixture(layer)) {
        CRIA_RETURN_IF_ERROR(ScaleExperts(layer));
      }
    }
    return {};
  }

 private:
  static std::string InLayer(size_t layer, std::string_view name) {
    return Format("model.layers.{}.{}", layer, name);
  }

  // A table may have rows behind those of the vocabulary.
  Status SplitTable() {
    const auto found = checkpoint_.tensors.find("model.embed_tokens_per_layer.weight");
    if (config_.hidden_size_per_layer_input == 0 || found == checkpoint_.tensors.end()) return {};
    TensorSource& table = found->second;
    const std::vector<uint64_t> wanted = {config_.vocab_size, config_.per_layer_channels()};
    if (table.shape.size() != 2 || table.shape[0] < wanted[0] || table.shape[1] != wanted[1]) {
      return WrongShape(table, wanted, checkpoint_);
    }
    table = RowsOf(table, 0, wanted[0]);
    table.shape = {wanted[0] * config_.num_hidden_layers, config_.hidden_size_per_layer_input};
    return {};
  }

  void LeaveOutKeysAndValues(size_t layer) {
    for (const std::string_view name :
         {"self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.k_proj.bias",
          "self_attn.v_proj.bias", "self_attn.k_norm.weight"}) {
      checkpoint_.tensors.erase(InLayer(layer, name));
    }
  }

  Status RepeatKeys(size_t layer) {
    for (const std::string_view end : {"weight", "bias"}) {
      const auto keys =
          checkpoint_.tensors.find(InLayer(layer, Format("self_attn.k_proj.{}", end)));
      if (keys == checkpoint_.tensors.end()) continue;
      const auto [values, is_new] = checkpoint_.tensors.emplace(
          InLayer(layer, Format("self_attn.v_proj.{}", end)), keys->second);
      if (is_new || keys_as_values_ == KeysAsValues::kWhereMissing) continue;
      return Fail(ErrorCode::kInvalidFile,
                  Format("{}: tensor \"{}\" is there, but {} says that keys are values",
                         values->second.file->path(), Quotable(values->second.name),
                         checkpoint_.described_by));
    }
    return {};
  }

  // Removes a vector of so many numbers, and returns them.
  Result<std::vector<float>> Take(const std::string& name, size_t size) {
    auto node = checkpoint_.tensors.extract(name);
    if (node.empty()) {
      return Fail(ErrorCode::kNotFound,
                  Format("{}: tensor \"{}\" is missing, but {} calls for it",
                         checkpoint_.folder.string(), name, checkpoint_.described_by));
    }
    const TensorSource& source = node.mapped();
    if (source.shape != std::vector<uint64_t>{size}) {
      return WrongShape(source, {size}, checkpoint_);
    }
    std::vector<float> values(size);
    TensorReader reader;
    CRIA_RETURN_IF_ERROR(reader.Read(source, 0, values));
    return values;
  }

  // The router reads rows whose channels are scaled; what an expert writes is scaled, too.
  Status ScaleExperts(size_t layer) {
    CRIA_ASSIGN_OR_RETURN(std::vector<float> channels,
                          Take(InLayer(layer, "router.scale"), config_.hidden_size));
    for (float& factor : channels) {
      factor = static_cast<float>(factor / std::sqrt(config_.hidden_size));
    }
    const auto router = checkpoint_.tensors.find(InLayer(layer, "mlp.gate.weight"));
    if (router != checkpoint_.tensors.end()) {
      router->second.column_factors =
          std::make_shared<const std::vector<float>>(std::move(channels));
    }
    CRIA_ASSIGN_OR_RETURN(const std::vector<float> experts,
                          Take(InLayer(layer, "router.per_expert_scale"), config_.num_experts));
    for (size_t i = 0; i < experts.size(); ++i) {
      const auto expert =
          checkpoint_.tensors.find(InLayer(layer, Format("mlp.experts.{}.down_proj.weight", i)));
      if (expert != checkpoint_.tensors.end()) expert->second.factor *= experts[i];
    }
    return {};
  }

  Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const KeysAsValues keys_as_values_;
};

}  // namespace

Status FitGemma4Tensors(Checkpoint& checkpoint, KeysAsValues keys_as_values) {
  return Fitter(checkpoint, keys_as_values).Fit();
}

}  // namespace cria
