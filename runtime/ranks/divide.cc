#include "ranks/divide.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <numeric>
#include <optional>

#include "core/numeric.h"

namespace cria::ranks {
namespace {

// A share of channels or rows is a multiple of a unit, so that few of the tiles in which weights
// are packed are filled up with zeros. If there were fewer units than this for each rank, smaller
// units divide the work more evenly.
constexpr size_t kMinUnitsPerRank = 8;
constexpr size_t kMaxUnit = 64;
// XNNPACK's smallest block of int4 weights.
constexpr size_t kMinBlock = kBlockSizes.front();

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

// The same for `count` things that are kept together in units; the last unit may be smaller.
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

// Gives each rank one head of keys and values with some of the query heads that read it.
bool DivideInsideGroups(const ModelConfig& config, size_t block, std::span<const double> weights,
                        std::vector<RankShare>& shares) {
  const size_t group = config.num_attention_heads / config.num_key_value_heads;
  if (group * config.head_dim % block != 0) return false;
  const std::vector<double> alike(config.num_key_value_heads, 1.0);
  const auto ranks = InProportion(shares.size(), alike);
  if (!ranks) return false;
  const size_t unit = HeadsOfBlock(config.head_dim, block);
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
      std::format("{} ranks are too many for this model: {}; start fewer ranks", num_ranks, what));
}

Status CheckDivisible(const ModelConfig& config, std::span<const double> weights) {
  if (weights.size() < 2 || weights.size() > kMaxRanks) {
    return Fail(ErrorCode::kUsage, std::format("a model is divided among 2 to {} ranks, not {}",
                                               kMaxRanks, weights.size()));
  }
  for (const double weight : weights) {
    if (!(std::isfinite(weight) && weight > 0.0)) {
      return Fail(ErrorCode::kUsage,
                  std::format("a rank's weight is {}, but must be above 0", weight));
    }
  }
  if (config.num_experts != 0) {
    return Fail(ErrorCode::kUnsupported,
                "mixtures of experts are not divided among ranks yet: run this model on one board");
  }
  return {};
}

}  // namespace

ColumnBlocks ColumnBlocks::Of(const ModelFile& model) {
  ColumnBlocks blocks;
  for (const StoredTensor& tensor : model.tensors()) {
    if (tensor.layout.scheme != Scheme::kQb4w) continue;
    size_t* const block = tensor.spec.role == TensorRole::kOProj      ? &blocks.o_proj
                          : tensor.spec.role == TensorRole::kDownProj ? &blocks.down_proj
                                                                      : nullptr;
    if (block != nullptr) *block = std::max(*block, tensor.layout.block_size);
  }
  return blocks;
}

Result<std::vector<RankShare>> Divide(const ModelConfig& config, const ColumnBlocks& blocks,
                                      std::span<const double> weights) {
  CRIA_RETURN_IF_ERROR(CheckDivisible(config, weights));
  std::vector<RankShare> shares(weights.size());
  // Smaller blocks with the same scale are the same weights, but more bytes: these are the second
  // choice.
  bool has_heads = false;
  for (size_t block = blocks.o_proj; !has_heads && block > 0; block /= 2) {
    if (blocks.o_proj > 1 && block < kMinBlock) break;
    has_heads = DivideWholeGroups(config, block, weights, shares) ||
                DivideInsideGroups(config, block, weights, shares);
  }
  if (!has_heads) {
    return FailToDivide(weights.size(),
                        std::format("{} heads of attention with {} of keys and values cannot be "
                                    "divided so often",
                                    config.num_attention_heads, config.num_key_value_heads));
  }
  const size_t inputs = config.intermediate_size;
  const bool has_blocks = blocks.down_proj > 1;
  const size_t unit =
      UnitOf(inputs, has_blocks ? kMinBlock : 1,
             has_blocks ? std::max(blocks.down_proj, kMinBlock) : kMaxUnit, weights.size());
  const auto channels = InUnits(inputs, unit, weights);
  const auto vocabulary =
      InUnits(config.vocab_size, UnitOf(config.vocab_size, 1, kMaxUnit, weights.size()), weights);
  if (!channels || !vocabulary) {
    return FailToDivide(weights.size(),
                        std::format("the feed-forward's {} channels have too few blocks", inputs));
  }
  for (size_t i = 0; i < shares.size(); ++i) {
    shares[i].channels = (*channels)[i];
    shares[i].vocabulary = (*vocabulary)[i];
  }
  return shares;
}

}  // namespace cria::ranks
