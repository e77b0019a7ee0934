#include "ranks/tensor_slice.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cria::ranks {
namespace {

// Columns are copied from so many bytes of mapped rows at once.
constexpr uint64_t kMaxMappedBytes = uint64_t{4} << 20;

size_t SumOf(std::span<const Range> ranges) {
  size_t sum = 0;
  for (const Range& range : ranges) sum += range.size();
  return sum;
}

Range MovedBy(size_t distance, const Range& range) {
  return {distance + range.begin, distance + range.end};
}

// The channels of heads, of which the first one has the channel `offset`.
Range ChannelsOf(const Range& heads, const ModelConfig& config, size_t offset = 0) {
  return MovedBy(offset, {heads.begin * config.head_dim, heads.end * config.head_dim});
}

// Chooses among the rows of queries, keys and values, which follow one another.
std::vector<Range> QkvChannels(const ModelConfig& config, const RankShare& share) {
  const size_t keys = config.query_channels();
  const size_t values = keys + config.key_value_channels();
  return {ChannelsOf(share.query_heads, config), ChannelsOf(share.key_value_heads, config, keys),
          ChannelsOf(share.key_value_heads, config, values)};
}

// Chooses among the rows of gate and up, which follow one another: each has `width`. There may be
// several such pairs, one for each expert.
std::vector<Range> GateUpChannels(const Range& channels, size_t width, size_t num_experts = 1) {
  std::vector<Range> ranges;
  ranges.reserve(2 * num_experts);
  for (size_t i = 0; i < 2 * num_experts; ++i) ranges.push_back(MovedBy(i * width, channels));
  return ranges;
}

// The weights of a short convolution's taps.
std::vector<Range> TapChannels(const ModelConfig& config, const Range& channels) {
  std::vector<Range> ranges;
  ranges.reserve(config.conv_L_cache);
  for (size_t tap = 0; tap < config.conv_L_cache; ++tap) {
    ranges.push_back(MovedBy(tap * config.conv_channels(), channels));
  }
  return ranges;
}

// The rows of both gates and of the input of a short convolution, which follow one another.
std::vector<Range> ConvInputs(const ModelConfig& config, const Range& channels) {
  const size_t width = config.conv_channels();
  return {channels, MovedBy(width, channels), MovedBy(2 * width, channels)};
}

// A dense feed-forward, which may have no gate.
std::vector<Range> DenseChannels(const Range& channels, const ModelConfig& config) {
  if (config.ungated_mlp) return {channels};
  return GateUpChannels(channels, config.intermediate_size);
}

TensorLayout LayoutOf(const TensorLayout& stored, const TensorSlice& slice) {
  TensorLayout layout = stored;
  layout.output_channels = SumOf(slice.rows);
  layout.input_channels = SumOf(slice.columns);
  layout.padded_input_channels = layout.input_channels;
  // A rank's parts of experts are small: a page of 16 KiB for each would be several percent more.
  layout.parts_share_pages = layout.num_parts > 1;
  if (slice.columns.size() > 1) return layout;  // A vector's.
  const size_t begin = slice.columns.front().begin;
  const size_t end = slice.columns.front().end;
  const size_t padded_end = end == stored.input_channels ? stored.padded_input_channels : end;
  layout.padded_input_channels = padded_end - begin;
  if (stored.scheme != Scheme::kQb4w) return layout;
  while (begin % layout.block_size != 0 || padded_end % layout.block_size != 0) {
    layout.block_size /= 2;
  }
  return layout;
}

}  // namespace

TensorSlice TensorSlice::Of(const TensorSpec& spec, const ModelConfig& config,
                            const RankShare& share) {
  TensorSlice slice = {.rows = {{0, spec.output_channels}}, .columns = {{0, spec.input_channels}}};
  if (RowOf(spec.role).ranks_have != RanksHave::kParts) return slice;
  switch (spec.role) {
    case TensorRole::kQkvProj:
      slice.rows = QkvChannels(config, share);
      break;
    case TensorRole::kQkvBias:
      slice.columns = QkvChannels(config, share);
      break;
    case TensorRole::kQNorm:
      if (config.joint_qk_norm) slice.columns = {ChannelsOf(share.query_heads, config)};
      break;
    case TensorRole::kKNorm:
      if (config.joint_qk_norm) slice.columns = {ChannelsOf(share.key_value_heads, config)};
      break;
    case TensorRole::kAttentionGate:
      slice.rows = {share.query_heads};
      break;
    case TensorRole::kAttnSinks:
      slice.columns = {share.query_heads};
      break;
    case TensorRole::kOProj:
      slice.columns = {ChannelsOf(share.query_heads, config)};
      break;
    case TensorRole::kConvInProj:
      slice.rows = ConvInputs(config, share.conv_channels);
      break;
    case TensorRole::kConvInBias:
      slice.columns = ConvInputs(config, share.conv_channels);
      break;
    case TensorRole::kConvWeight:
      slice.columns = TapChannels(config, share.conv_channels);
      break;
    case TensorRole::kConvBias:
    case TensorRole::kConvOutProj:
      slice.columns = {share.conv_channels};
      break;
    case TensorRole::kGateUpProj:
      slice.rows = DenseChannels(share.channels, config);
      break;
    case TensorRole::kGateUpBias:
      slice.columns = DenseChannels(share.channels, config);
      break;
    case TensorRole::kDownProj:
      slice.columns = {share.channels};
      break;
    case TensorRole::kExpertsGateUpProj:
      slice.rows =
          GateUpChannels(share.expert_channels, config.moe_intermediate_size, config.num_experts);
      break;
    case TensorRole::kExpertsGateUpBias:
      slice.columns =
          GateUpChannels(share.expert_channels, config.moe_intermediate_size, config.num_experts);
      break;
    case TensorRole::kExpertsDownProj:
      slice.columns = {share.expert_channels};
      break;
    case TensorRole::kSharedExpertGateUpProj:
      slice.rows =
          GateUpChannels(share.shared_expert_channels, config.shared_expert_intermediate_size);
      break;
    case TensorRole::kSharedExpertDownProj:
      slice.columns = {share.shared_expert_channels};
      break;
    case TensorRole::kLmHead:
      slice.rows = {share.vocabulary};
      break;
    default:
      break;
  }
  return slice;
}

bool TensorSlice::IsAllOf(const TensorLayout& layout) const {
  return SumOf(rows) == layout.output_channels && SumOf(columns) == layout.input_channels;
}

SlicedTensor::SlicedTensor(const StoredTensor& stored, TensorSlice slice)
    : stored_(stored.layout),
      data_(stored.data),
      scales_(stored.scales),
      slice_(std::move(slice)),
      layout_(LayoutOf(stored_, slice_)) {}

SlicedTensor::Rows SlicedTensor::StoredRows(size_t row) const {
  size_t first = 0;
  for (const Range& range : slice_.rows) {
    if (row < first + range.size()) {
      return {range.begin + row - first, first + range.size() - row};
    }
    first += range.size();
  }
  return {};
}

Status SlicedTensor::Read(const ModelFile& model, size_t first, size_t rows,
                          std::span<std::byte> data, std::span<std::byte> scales) const {
  if (slice_.columns.size() > 1) return ReadVector(model, data);
  for (size_t row = first, end = first + rows; row < end;) {
    Rows part = StoredRows(row);
    const uint64_t max_rows = std::max<uint64_t>(kMaxMappedBytes / stored_.row_bytes(), 1);
    part.count = static_cast<size_t>(std::min<uint64_t>({part.count, end - row, max_rows}));
    const auto take = [&](std::span<std::byte> bytes, uint64_t row_bytes) {
      return bytes.subspan((row - first) * row_bytes, part.count * row_bytes);
    };
    CRIA_RETURN_IF_ERROR(ReadColumns(model, part, take(data, layout_.row_bytes())));
    CRIA_RETURN_IF_ERROR(ReadScales(model, part, take(scales, layout_.row_scale_bytes())));
    row += part.count;
  }
  return {};
}

Status SlicedTensor::ReadVector(const ModelFile& model, std::span<std::byte> data) const {
  for (const Range& range : slice_.columns) {
    const uint64_t bytes = range.size() * sizeof(float);
    CRIA_RETURN_IF_ERROR(
        model.Read({data_.offset + range.begin * sizeof(float), bytes}, data.first(bytes)));
    data = data.subspan(bytes);
  }
  return {};
}

Status SlicedTensor::ReadColumns(const ModelFile& model, const Rows& rows,
                                 std::span<std::byte> data) const {
  const uint64_t stored_bytes = stored_.row_bytes();
  const uint64_t own_bytes = layout_.row_bytes();
  const FileRange range = {data_.offset + rows.stored * stored_bytes, rows.count * stored_bytes};
  if (own_bytes == stored_bytes) return model.Read(range, data);
  CRIA_ASSIGN_OR_RETURN(const platform::FileMapping mapping, model.Map(range));
  // Several weights share a byte; shares begin at a multiple of a block.
  const uint64_t begin =
      slice_.columns.front().begin * stored_bytes / stored_.padded_input_channels;
  for (size_t row = 0; row < rows.count; ++row) {
    std::memcpy(data.data() + row * own_bytes, mapping.bytes().data() + row * stored_bytes + begin,
                own_bytes);
  }
  return {};
}

Status SlicedTensor::ReadScales(const ModelFile& model, const Rows& rows,
                                std::span<std::byte> scales) const {
  const uint64_t stored_bytes = stored_.row_scale_bytes();
  if (stored_bytes == 0) return {};
  const FileRange range = {scales_.offset + rows.stored * stored_bytes, rows.count * stored_bytes};
  if (layout_.block_size == stored_.block_size && layout_.row_scale_bytes() == stored_bytes) {
    return model.Read(range, scales);
  }
  CRIA_ASSIGN_OR_RETURN(const platform::FileMapping mapping, model.Map(range));
  constexpr size_t kScale = sizeof(uint16_t);
  const size_t own_blocks = layout_.scales_per_row();
  for (size_t row = 0; row < rows.count; ++row) {
    const std::byte* const stored = mapping.bytes().data() + row * stored_bytes;
    for (size_t block = 0; block < own_blocks; ++block) {
      const size_t column = slice_.columns.front().begin + block * layout_.block_size;
      std::memcpy(scales.data() + (row * own_blocks + block) * kScale,
                  stored + column / stored_.block_size * kScale, kScale);
    }
  }
  return {};
}

}  // namespace cria::ranks
