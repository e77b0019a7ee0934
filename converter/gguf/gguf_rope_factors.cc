#include "converter/gguf/gguf_rope_factors.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/gguf/llama3_rope.h"
#include "core/format.h"

namespace cria {
namespace {

constexpr std::string_view kRopeFactors = "rope_freqs.weight";
constexpr std::string_view kShortFactors = "rope_factors_short.weight";
constexpr std::string_view kLongFactors = "rope_factors_long.weight";

// Takes the tensor, which must exist, from `tensors`.
Result<std::vector<float>> TakeFactors(std::string_view name, const ModelConfig& config,
                                       TensorSources& tensors) {
  const auto found = tensors.find(name);
  const TensorSource source = std::move(found->second);
  tensors.erase(found);
  const uint32_t channels = config.rotary_channels();
  if (source.shape != std::vector<uint64_t>{channels / 2} || channels > kMaxHeadDim) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: tensor \"{}\" has shape {}, but heads have {}", source.file->path(),
                       name, source.ShapeText(), channels));
  }
  std::vector<float> factors(source.shape.front());
  CRIA_RETURN_IF_ERROR(TensorReader().Read(source, 0, factors));
  return factors;
}

Status ApplyLlama3Factors(const GgufMetadata& metadata, TensorSources& tensors,
                          ModelConfig& config) {
  if (!tensors.contains(kRopeFactors)) return {};
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kUnsupported,
                Format("{}: tensor \"{}\" {}", metadata.where(), kRopeFactors, what));
  };
  CRIA_ASSIGN_OR_RETURN(const std::vector<float> factors,
                        TakeFactors(kRopeFactors, config, tensors));
  for (LayerKind& kind : config.layer_kinds) {
    if (!kind.has_attention()) continue;
    const auto scaling = FindLlama3Scaling(factors, kind.rope_theta);
    if (!scaling) {
      return bad(
          "scales rotary frequencies in another way than Llama 3 does, which this version does "
          "not support");
    }
    if (scaling->type == RopeScaling::Type::kNone) continue;
    if (kind.rope_scaling.type != RopeScaling::Type::kNone) {
      return bad("scales rotary frequencies that rope.scaling.type scales, too");
    }
    kind.rope_scaling = *scaling;
  }
  return {};
}

// Phi 3's files have both lists, or none.
Status ApplyLongrope(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                     TensorSources& tensors, ModelConfig& config) {
  const auto key = [&](std::string_view name) {
    return Format("{}.rope.scaling.{}", architecture.name, name);
  };
  const bool has_short = tensors.contains(kShortFactors);
  if (has_short != tensors.contains(kLongFactors)) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: has only one of the tensors \"{}\" and \"{}\"",
                                                metadata.where(), kShortFactors, kLongFactors));
  }
  if (!has_short) {
    CRIA_ASSIGN_OR_RETURN(const float factor, metadata.Number(key("attn_factor"), 1.0f));
    if (factor == 1.0f) return {};
    return metadata.Bad(key("attn_factor"),
                        Format("is {}, which this version does not support", factor),
                        ErrorCode::kUnsupported);
  }
  RopeScaling scaling = {.type = RopeScaling::Type::kLongrope};
  CRIA_ASSIGN_OR_RETURN(scaling.short_factor, TakeFactors(kShortFactors, config, tensors));
  CRIA_ASSIGN_OR_RETURN(scaling.long_factor, TakeFactors(kLongFactors, config, tensors));
  CRIA_ASSIGN_OR_RETURN(scaling.attention_factor, metadata.Number(key("attn_factor")));
  CRIA_ASSIGN_OR_RETURN(
      scaling.original_max_position_embeddings,
      metadata.Integer(key("original_context_length"), config.max_position_embeddings));
  for (LayerKind& kind : config.layer_kinds) {
    if (kind.rope_scaling.type != RopeScaling::Type::kNone) {
      return metadata.Bad(key("type"),
                          "scales rotary frequencies that tensors scale, too, which this version "
                          "does not support",
                          ErrorCode::kUnsupported);
    }
    kind.rope_scaling = scaling;
  }
  return {};
}

}  // namespace

Status ApplyGgufRopeFactors(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                            TensorSources& tensors, ModelConfig& config) {
  CRIA_RETURN_IF_ERROR(ApplyLlama3Factors(metadata, tensors, config));
  if (!architecture.has_longrope) return {};
  return ApplyLongrope(metadata, architecture, tensors, config);
}

}  // namespace cria
