#include "converter/gguf/gguf_gemma4.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace cria {
namespace {

constexpr std::string_view kGemma4Factors = "rope_freqs.weight";

class Gemma4Reader {
 public:
  Gemma4Reader(const GgufMetadata& metadata, const GgufArchitecture& architecture,
               const std::vector<bool>& is_sliding, ModelConfig& config,
               std::vector<LayerKind>& layers)
      : metadata_(metadata),
        architecture_(architecture),
        is_sliding_(is_sliding),
        config_(config),
        layers_(layers) {}

  Status Read() {
    config_.v_norm = true;
    CRIA_RETURN_IF_ERROR(ReadHeads());
    CRIA_RETURN_IF_ERROR(ReadHeadSizes());
    CRIA_RETURN_IF_ERROR(ReadSharedLayers());
    CRIA_RETURN_IF_ERROR(ReadWidths());
    CRIA_ASSIGN_OR_RETURN(config_.hidden_size_per_layer_input,
                          metadata_.Integer(Key("embedding_length_per_layer_input"), 0));
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (is_sliding_[i]) continue;
      if (layers_[i].rope_scaling.type != RopeScaling::Type::kNone) {
        return metadata_.Bad(Key("rope.scaling.type"), "scales what a tensor scales, too",
                             ErrorCode::kUnsupported);
      }
      // ApplyGgufGemma4Factors reads the part.
      layers_[i].rope_scaling = {.type = RopeScaling::Type::kProportional,
                                 .partial_rotary_factor = 1.0f};
    }
    return {};
  }

 private:
  std::string Key(std::string_view name) const { return Format("{}.{}", architecture_.name, name); }

  // A number for all layers, or one for each.
  Result<std::vector<uint32_t>> ReadEach(std::string_view name) const {
    const std::string key = Key(name);
    const auto* list = metadata_.Find<std::vector<int64_t>>(key);
    if (list == nullptr) {
      CRIA_ASSIGN_OR_RETURN(const uint32_t number, metadata_.Integer(key));
      return std::vector<uint32_t>(layers_.size(), number);
    }
    if (list->size() != layers_.size()) {
      return metadata_.Bad(
          key, Format("has {} entries, but there are {} layers", list->size(), layers_.size()));
    }
    std::vector<uint32_t> numbers;
    for (const int64_t number : *list) {
      if (number < 1 || number > std::numeric_limits<uint32_t>::max()) {
        return metadata_.Bad(key, Format("has {}", number));
      }
      numbers.push_back(static_cast<uint32_t>(number));
    }
    return numbers;
  }

  // The number of layers with a window, or without; it must be the same for all of them.
  Result<std::optional<uint32_t>> CommonOf(std::string_view name,
                                           const std::vector<uint32_t>& numbers,
                                           bool slides) const {
    std::optional<uint32_t> common;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (is_sliding_[i] != slides) continue;
      if (common && *common != numbers[i]) {
        return metadata_.Bad(Key(name), "differs between layers that are alike otherwise",
                             ErrorCode::kUnsupported);
      }
      common = numbers[i];
    }
    return common;
  }

  Status ReadHeads() {
    constexpr std::string_view kName = "attention.head_count_kv";
    CRIA_ASSIGN_OR_RETURN(const std::vector<uint32_t> heads, ReadEach(kName));
    CRIA_ASSIGN_OR_RETURN(const auto sliding, CommonOf(kName, heads, true));
    CRIA_ASSIGN_OR_RETURN(const auto full, CommonOf(kName, heads, false));
    config_.num_key_value_heads = sliding ? *sliding : full.value_or(0);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (heads[i] == config_.num_key_value_heads) continue;
      layers_[i].num_global_key_value_heads = heads[i];
    }
    return {};
  }

  Status ReadHeadSizes() {
    CRIA_ASSIGN_OR_RETURN(const uint32_t full, metadata_.Integer(Key("attention.key_length")));
    CRIA_ASSIGN_OR_RETURN(const uint32_t sliding,
                          metadata_.Integer(Key("attention.key_length_swa"), full));
    struct Size {
      std::string_view name;
      uint32_t wanted;
    };
    for (const Size& size :
         {Size{"attention.value_length", full}, Size{"attention.value_length_swa", sliding},
          Size{"rope.dimension_count", full}, Size{"rope.dimension_count_swa", sliding}}) {
      CRIA_ASSIGN_OR_RETURN(const uint32_t given, metadata_.Integer(Key(size.name), size.wanted));
      if (given == size.wanted) continue;
      return metadata_.Bad(Key(size.name), Format("is {}, but heads have {}", given, size.wanted),
                           ErrorCode::kUnsupported);
    }
    config_.head_dim = sliding;
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (!is_sliding_[i] && full != sliding) layers_[i].global_head_dim = full;
    }
    return {};
  }

  Status ReadSharedLayers() {
    const std::string key = Key("attention.shared_kv_layers");
    CRIA_ASSIGN_OR_RETURN(const uint32_t num_shared, metadata_.Integer(key, 0));
    if (num_shared != 0 && num_shared >= layers_.size()) {
      return metadata_.Bad(key,
                           Format("is {}, but there are {} layers", num_shared, layers_.size()));
    }
    const size_t num_own = layers_.size() - num_shared;
    for (size_t i = num_own; i < layers_.size(); ++i) {
      size_t read = num_own;
      while (read > 0 && is_sliding_[read - 1] != is_sliding_[i]) --read;
      if (read == 0) return metadata_.Bad(key, Format("leaves layer {} nothing to read", i));
      layers_[i].kv_shared_layer = static_cast<uint32_t>(read);
    }
    return {};
  }

  Status ReadWidths() {
    constexpr std::string_view kName = "feed_forward_length";
    CRIA_ASSIGN_OR_RETURN(const std::vector<uint32_t> widths, ReadEach(kName));
    config_.intermediate_size = widths.empty() ? 0 : std::ranges::min(widths);
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (widths[i] == config_.intermediate_size) continue;
      if (widths[i] != uint64_t{2} * config_.intermediate_size) {
        return metadata_.Bad(Key(kName),
                             Format("has {} and {}, of which one is not twice the other",
                                    config_.intermediate_size, widths[i]),
                             ErrorCode::kUnsupported);
      }
      layers_[i].use_double_wide_mlp = true;
    }
    return {};
  }

  const GgufMetadata& metadata_;
  const GgufArchitecture& architecture_;
  const std::vector<bool>& is_sliding_;
  ModelConfig& config_;
  std::vector<LayerKind>& layers_;
};

}  // namespace

Status ReadGgufGemma4(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                      const std::vector<bool>& is_sliding, ModelConfig& config,
                      std::vector<LayerKind>& layers) {
  return Gemma4Reader(metadata, architecture, is_sliding, config, layers).Read();
}

Status ApplyGgufGemma4Factors(Checkpoint& checkpoint) {
  auto node = checkpoint.tensors.extract(std::string(kGemma4Factors));
  for (LayerKind& kind : checkpoint.config.layer_kinds) {
    if (kind.rope_scaling.type != RopeScaling::Type::kProportional) continue;
    if (node.empty()) {
      return Fail(ErrorCode::kNotFound, Format("{}: tensor \"{}\" is missing",
                                               checkpoint.folder.string(), kGemma4Factors));
    }
    const TensorSource& source = node.mapped();
    const uint32_t pairs = checkpoint.config.head_dim_of(kind) / 2;
    if (source.shape != std::vector<uint64_t>{pairs} || pairs > kMaxHeadDim / 2) {
      return Fail(ErrorCode::kUnsupported,
                  Format("{}: tensor \"{}\" has shape {}, but heads have {} pairs",
                         source.file->path(), kGemma4Factors, source.ShapeText(), pairs));
    }
    std::vector<float> factors(pairs);
    CRIA_RETURN_IF_ERROR(TensorReader().Read(source, 0, factors));
    // Pairs that stay as they are have a factor that leaves nothing of their angles.
    constexpr float kLeastOfOthers = 1e29f;
    const auto first = std::ranges::find_if(factors, [](float factor) { return factor != 1.0f; });
    const auto turned = static_cast<float>(first - factors.begin());
    if (first == factors.begin() ||
        !std::all_of(first, factors.end(), [](float factor) { return factor >= kLeastOfOthers; })) {
      return Fail(ErrorCode::kUnsupported,
                  Format("{}: tensor \"{}\" scales rotary frequencies in a way that this version "
                         "does not support",
                         source.file->path(), kGemma4Factors));
    }
    kind.rope_scaling.partial_rotary_factor = turned / static_cast<float>(pairs);
  }
  return {};
}

}  // namespace cria
