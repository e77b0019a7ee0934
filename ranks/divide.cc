#include "ranks/divide.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "core/format.h"
#include "core/numeric.h"

namespace cria::ranks {
namespace {

// A share of channels or rows is a multiple of a unit, so that few of the tiles in which weights
// are packed are filled up with zeros. If there were fewer units than this for each rank, smaller
// units divide the work more evenly.
constexpr size_t kMinUnitsPerRank = 8;
constexpr size_t kMaxUnit = 64;

// `count` things in proportion to the weights, at least one for each; nothing if there are too few.
std::optional<std::vector<Range>> InProportion(size_t count, std::span<const double> weights) {
  if (count < weights.size()) return std::nullopt;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Range> ranges;
  double sum = 0.0;
  size_t begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    const double wanted = std::floor(static_cast<double>(count) * sum / total + 0.5);
    const size_t left = weights.size() - 1 - i;
    const size_t end =
        left == 0 ? count
                  : std::clamp(static_cast<size_t>(std::max(wanted, 0.0)), begin + 1, count - left);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

// Divides `count` things that are kept together in units; the last unit may be smaller.
std::optional<std::vector<Range>> InUnits(size_t count, size_t unit,
                                          std::span<const double> weights) {
  auto ranges = InProportion(DivideRoundingUp(count, unit), weights);
  if (!ranges) return ranges;
  for (Range& range : *ranges) {
    range = {range.begin * unit, std::min(range.end * unit, count)};
  }
  return ranges;
}

// The largest power of two up to `max` of which each rank gets enough, but at least `min`.
size_t UnitOf(size_t count, size_t min, size_t max, size_t num_ranks) {
  size_t unit = max;
  while (unit > min && count / unit < kMinUnitsPerRank * num_ranks) unit /= 2;
  return unit;
}

// Divides columns or rows so that each share begins as `block` wants it.
std::optional<std::vector<Range>> InBlocks(size_t count, const ColumnBlock& block,
                                           std::span<const double> weights) {
  const size_t unit = block.size > 1 ? UnitOf(count, block.smallest, block.size, weights.size())
                                     : UnitOf(count, 1, kMaxUnit, weights.size());
  return InUnits(count, unit, weights);
}

// The smallest number of heads whose channels are a multiple of `block`.
size_t HeadsOfBlock(size_t head_channels, size_t block) {
  return block / std::gcd(head_channels, block);
}

// Gives each rank whole heads of keys and values with all query heads that read them.
bool DivideWholeGroups(const ModelConfig& config, size_t block, std::span<const double> weights,
                       std::vector<RankShare>& shares) {
  const size_t group = config.num_attention_heads / config.num_key_value_heads;
  const size_t unit = HeadsOfBlock(group * config.head_dim, block);
  const auto heads = InUnits(config.num_key_value_heads, unit, weights);
  if (!heads) return false;
  for (size_t i = 0; i < shares.size(); ++i) {
    const Range own = (*heads)[i];
    shares[i].key_value_heads = own;
    shares[i].query_heads = {own.begin * group, own.end * group};
  }
  return true;
}

// Ranks that follow one another for each head, at least one and `max_ranks` at most, so that the
// ranks of each head together have about the same weight; nothing if there are too few or too many.
std::optional<std::vector<Range>> RanksOfHeads(size_t num_heads, size_t max_ranks,
                                               std::span<const double> weights) {
  if (weights.size() < num_heads || weights.size() > num_heads * max_ranks) return std::nullopt;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<Range> ranks;
  double sum = 0.0;
  size_t end = 0;
  for (size_t head = 0; head < num_heads; ++head) {
    const size_t begin = end;
    const size_t heads_left = num_heads - 1 - head;
    const size_t max_end = std::min(begin + max_ranks, weights.size() - heads_left);
    const double wanted = total * static_cast<double>(head + 1) / static_cast<double>(num_heads);
    sum += weights[end++];
    while (end < max_end && (weights.size() - end > heads_left * max_ranks ||
                             std::abs(sum + weights[end] - wanted) <= std::abs(sum - wanted))) {
      sum += weights[end++];
    }
    ranks.push_back({begin, end});
  }
  return ranks;
}

// Gives each rank one head of keys and values with some of the query heads that read it.
bool DivideInsideGroups(const ModelConfig& config, size_t block, std::span<const double> weights,
                        std::vector<RankShare>& shares) {
  const size_t group = config.num_attention_heads / config.num_key_value_heads;
  if (group * config.head_dim % block != 0) return false;
  const size_t unit = HeadsOfBlock(config.head_dim, block);
  const auto ranks =
      RanksOfHeads(config.num_key_value_heads, DivideRoundingUp(group, unit), weights);
  if (!ranks) return false;
  for (size_t head = 0; head < ranks->size(); ++head) {
    const Range own = (*ranks)[head];
    const auto queries = InUnits(group, unit, weights.subspan(own.begin, own.size()));
    if (!queries) return false;
    for (size_t i = 0; i < own.size(); ++i) {
      const Range some = (*queries)[i];
      shares[own.begin + i].key_value_heads = {head, head + 1};
      shares[own.begin + i].query_heads = {head * group + some.begin, head * group + some.end};
    }
  }
  return true;
}

std::unexpected<Error> FailToDivide(size_t num_ranks, std::string_view what) {
  return Fail(
      ErrorCode::kUsage,
      Format("{} ranks are too many for this model: {}; start fewer ranks", num_ranks, what));
}

Status CheckWeights(std::span<const double> weights) {
  if (weights.size() < 2 || weights.size() > kMaxRanks) {
    return Fail(ErrorCode::kUsage, Format("a model is divided among 2 to {} ranks, not {}",
                                          kMaxRanks, weights.size()));
  }
  for (const double weight : weights) {
    if (!(std::isfinite(weight) && weight > 0.0)) {
      return Fail(ErrorCode::kUsage, Format("a rank's weight is {}, but must be above 0", weight));
    }
  }
  return {};
}

// A field of the configuration for which parts of layers are not known; empty if there is none.
std::string_view UndividedFeature(const ModelConfig& config) {
  if (config.has_linear_attention()) return "linear_attention";
  if (config.has_mamba()) return "mamba";
  if (config.attn_output_gate) return "attn_output_gate";
  if (config.hidden_size_per_layer_input != 0) return "hidden_size_per_layer_input";
  if (config.enable_moe_block) return "enable_moe_block";
  for (const LayerKind& kind : config.layer_kinds) {
    if (kind.global_head_dim != 0) return "global_head_dim";
    if (kind.num_global_key_value_heads != 0) return "num_global_key_value_heads";
    if (kind.kv_shared_layer != 0) return "kv_shared_layer";
    if (kind.use_double_wide_mlp) return "use_double_wide_mlp";
  }
  return {};
}

}  // namespace

ColumnBlock* ColumnBlocks::Find(TensorRole role) {
  switch (role) {
    case TensorRole::kOProj:
      return &o_proj;
    case TensorRole::kConvOutProj:
      return &conv_out_proj;
    case TensorRole::kDownProj:
      return &down_proj;
    case TensorRole::kExpertsDownProj:
      return &experts_down_proj;
    case TensorRole::kSharedExpertDownProj:
      return &shared_expert_down_proj;
    default:  // Their columns are not divided.
      return nullptr;
  }
}

ColumnBlocks ColumnBlocks::Of(const ModelFile& model) {
  ColumnBlocks blocks;
  for (const StoredTensor& tensor : model.tensors()) {
    ColumnBlock* const block = blocks.Find(tensor.spec.role);
    if (block == nullptr) continue;
    if (const BlockFormat* const format = tensor.layout.block_format()) {
      block->size = std::max<size_t>(block->size, format->inputs);
      block->smallest = std::max<size_t>(block->smallest, format->inputs);
    } else if (tensor.layout.scheme == Scheme::kQb4w) {
      // Smaller blocks with the same scale are the same weights, but more bytes.
      block->size = std::max(block->size, tensor.layout.block_size);
      block->smallest = std::max(block->smallest, kBlockSizes.front());
    }
  }
  return blocks;
}

Result<std::vector<RankShare>> Divide(const ModelConfig& config, const ColumnBlocks& blocks,
                                      std::span<const double> weights) {
  CRIA_RETURN_IF_ERROR(CheckWeights(weights));
  if (const std::string_view feature = UndividedFeature(config); !feature.empty()) {
    return Fail(
        ErrorCode::kUnsupported,
        Format("models with {} cannot be divided among ranks yet; start one rank", feature));
  }
  std::vector<RankShare> shares(weights.size());
  bool has_heads = false;
  for (size_t block = blocks.o_proj.size;
       !has_heads && block > 0 && block >= blocks.o_proj.smallest; block /= 2) {
    has_heads = DivideWholeGroups(config, block, weights, shares) ||
                DivideInsideGroups(config, block, weights, shares);
  }
  if (!has_heads) {
    return FailToDivide(weights.size(),
                        Format("{} heads of attention with {} of keys and values cannot be "
                               "divided so often",
                               config.num_attention_heads, config.num_key_value_heads));
  }
  const struct {
    Range RankShare::* part;
    size_t count;
    ColumnBlock block;
    std::string_view what;
  } divided[] = {{&RankShare::conv_channels, config.has_short_conv() ? config.conv_channels() : 0,
                  blocks.conv_out_proj, "channels of short convolutions"},
                 {&RankShare::channels, config.has_dense_layers() ? config.intermediate_size : 0,
                  blocks.down_proj, "channels of the feed-forward"},
                 {&RankShare::expert_channels, config.moe_intermediate_size,
                  blocks.experts_down_proj, "channels of an expert"},
                 {&RankShare::shared_expert_channels, config.shared_expert_intermediate_size,
                  blocks.shared_expert_down_proj, "channels of the shared expert"},
                 {&RankShare::vocabulary, config.vocab_size, {}, "rows of the vocabulary"}};
  for (const auto& [part, count, block, what] : divided) {
    if (count == 0) continue;
    const auto ranges = InBlocks(count, block, weights);
    if (!ranges) {
      return FailToDivide(weights.size(), Format("{} {} have too few blocks", count, what));
    }
    for (size_t i = 0; i < shares.size(); ++i) shares[i].*part = (*ranges)[i];
  }
  return shares;
}

}  // namespace cria::ranks
