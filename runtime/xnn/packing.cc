#include "xnn/packing.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "core/format.h"
#include "core/platform.h"
#include "model/checksum.h"
#include "weights/block_tiles.h"
#include "xnn/linear.h"
#include "xnn/linear_operator.h"
#include "xnn/xnn_operator.h"

namespace cria::xnn {
namespace {

// Kernels compute tiles of 8 to 64 outputs, and for a matrix of few outputs XNNPACK may choose
// another kernel with another tile. So slices end at multiples of this, and none is shorter.
constexpr size_t kRowGranularity = 128;

// A weights cache that packs one matrix into memory of the caller.
class PackingCache {
 public:
  explicit PackingCache(std::span<std::byte> destination) : destination_(destination) {
    provider_ = {.context = this,
                 .look_up = [](void*, const xnn_weights_cache_look_up_key*) { return SIZE_MAX; },
                 .reserve_space = ReserveSpace,
                 .look_up_or_insert = [](void*, const xnn_weights_cache_look_up_key*, void*,
                                         size_t) { return size_t{0}; },
                 .is_finalized = [](void*) { return false; },
                 .offset_to_addr = [](void* self, size_t) -> void* {
                   return static_cast<PackingCache*>(self)->destination_.data();
                 },
                 .delete_cache = [](void*) { return xnn_status_success; }};
  }
  PackingCache(const PackingCache&) = delete;
  PackingCache& operator=(const PackingCache&) = delete;

  xnn_weights_cache_t provider() { return &provider_; }
  // The bytes that XNNPACK asked for; nothing before it asked.
  std::optional<size_t> reserved_bytes() const { return reserved_bytes_; }

 private:
  static void* ReserveSpace(void* context, size_t bytes) {
    auto* self = static_cast<PackingCache*>(context);
    self->reserved_bytes_ = bytes;
    return bytes == self->destination_.size() ? self->destination_.data() : nullptr;
  }

  std::span<std::byte> destination_;
  std::optional<size_t> reserved_bytes_;
  xnn_weights_cache_provider provider_ = {};
};

OperatorStrides TightStrides(const TensorLayout& layout) {
  return {.input = layout.padded_input_channels,
          .quantized = layout.padded_input_channels,
          .output = layout.output_channels};
}

// A matrix of fixed numbers, in which neighbours differ.
class ProbeMatrix {
 public:
  ProbeMatrix(Scheme scheme, size_t rows) {
    constexpr size_t kInputs = 128;
    layout_ = MakeTensorLayout({TensorRole::kQkvProj, 0, rows, kInputs}, scheme, kBlockSizes[0]);
    data_.resize(layout_.data_bytes() + kReadableSlackBytes);
    for (size_t i = 0; i < layout_.data_bytes(); ++i) {
      data_[i] = static_cast<std::byte>((i * 2654435761u) >> 13);
    }
    if (scheme == Scheme::kF32) FillScales<float>(data_);
    scales_.resize(layout_.scale_bytes());
    if (scheme == Scheme::kQc8w) FillScales<float>(scales_);
    if (scheme == Scheme::kQb4w) FillScales<uint16_t>(scales_);
  }

  // `count` rows from `first` on.
  LinearWeights Rows(size_t first, size_t count) const {
    LinearWeights rows = {.layout = layout_,
                          .data = std::span(data_).subspan(first * layout_.row_bytes()),
                          .scales = std::span(scales_).subspan(first * layout_.row_scale_bytes())};
    rows.layout.output_channels = count;
    return rows;
  }

 private:
  // Positive, normal numbers of type float, or the upper halves of such numbers.
  template <typename T>
  static void FillScales(std::span<std::byte> bytes) {
    for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      const float number = 1.0f + static_cast<float>(i % 127) / 128.0f;
      const auto* end = reinterpret_cast<const std::byte*>(&number + 1);
      std::memcpy(&bytes[i * sizeof(T)], end - sizeof(T), sizeof(T));
    }
  }

  TensorLayout layout_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
};

Result<uint64_t> PackedBytesOfRows(TensorLayout layout, size_t rows) {
  layout.output_channels = rows;
  const std::vector<uint16_t> scales(rows * layout.scales_per_row(), kSoundScale);
  // The cache refuses the space that XNNPACK asks for, which ends the packing before it begins.
  PackingCache cache({});
  xnn_operator_t op = nullptr;
  const xnn_status status = CreateLinearOperator(layout, kUnreadWeights, scales.data(),
                                                 TightStrides(layout), cache.provider(), &op);
  const OperatorHandle handle(op);
  if (cache.reserved_bytes().has_value()) return *cache.reserved_bytes();
  CRIA_RETURN_IF_ERROR(CheckStatus(status, "sizing a linear layer"));
  return Fail(ErrorCode::kInternal, "XNNPACK made a linear layer without packing it");
}

std::unexpected<Error> WrongSize(size_t needed, size_t given) {
  return Fail(
      ErrorCode::kInternal,
      Format("a linear layer is packed into {} bytes, but {} were set aside", needed, given));
}

uint64_t BytesPerRow(const TensorLayout& layout) {
  return layout.row_bytes() + layout.row_scale_bytes();
}

// The number of rows of all slices except the last.
size_t SliceRows(const TensorLayout& layout, uint64_t max_bytes) {
  const uint64_t tiles = max_bytes / BytesPerRow(layout) / kRowGranularity;
  // Avoids an overflow of size_t on 32 bits.
  constexpr uint64_t kMaxTiles = SIZE_MAX / kRowGranularity / 2;
  return static_cast<size_t>(std::clamp<uint64_t>(tiles, 1, kMaxTiles)) * kRowGranularity;
}

}  // namespace

uint64_t PackedPartStride(const TensorLayout& layout, uint64_t part_bytes) {
  return AlignUp(part_bytes, layout.parts_share_pages ? kPackedAlignment : kSectionAlignment);
}

Result<uint64_t> PackedBytes(const TensorLayout& layout) {
  if (layout.is_plain) return layout.data_bytes();
  if (layout.num_parts > 1) {
    CRIA_ASSIGN_OR_RETURN(const uint64_t part_bytes, PackedBytes(layout.Part()));
    return layout.num_parts * PackedPartStride(layout, part_bytes);
  }
  const size_t rows = layout.output_channels;
  if (const BlockFormat* const format = layout.block_format(); format != nullptr) {
    return TiledBytes(*format, rows, layout.padded_input_channels);
  }
  CRIA_RETURN_IF_ERROR(Initialize());
  if (rows < 2 * kRowGranularity) return PackedBytesOfRows(layout, rows);
  // Two small slices instead of a large one, whose scales alone may be large.
  const size_t last_rows = kRowGranularity + rows % kRowGranularity;
  CRIA_ASSIGN_OR_RETURN(const uint64_t slice_bytes, PackedBytesOfRows(layout, kRowGranularity));
  CRIA_ASSIGN_OR_RETURN(const uint64_t last_bytes, PackedBytesOfRows(layout, last_rows));
  return (rows - last_rows) / kRowGranularity * slice_bytes + last_bytes;
}

Result<std::vector<uint64_t>> PackedBytes(std::span<const TensorLayout> layouts) {
  std::vector<uint64_t> bytes;
  for (size_t i = 0; i < layouts.size(); ++i) {
    // Most layers have the same layout, and there may be a hundred of them.
    const auto alike = std::ranges::find(layouts.first(i), layouts[i]);
    if (const size_t known = alike - layouts.begin(); known < i) {
      bytes.push_back(bytes[known]);
    } else {
      CRIA_ASSIGN_OR_RETURN(const uint64_t packed_bytes, PackedBytes(layouts[i]));
      bytes.push_back(packed_bytes);
    }
  }
  return bytes;
}

Status Pack(const LinearWeights& weights, std::span<std::byte> packed) {
  if (weights.layout.is_plain) {
    std::ranges::copy(weights.data, packed.begin());
    return {};
  }
  if (const BlockFormat* const format = weights.layout.block_format(); format != nullptr) {
    const size_t bytes =
        TiledBytes(*format, weights.layout.output_channels, weights.layout.padded_input_channels);
    if (packed.size() != bytes) return WrongSize(bytes, packed.size());
    PackTiles(*format, weights.data.data(), weights.layout.output_channels,
              weights.layout.padded_input_channels, packed);
    return {};
  }
  CRIA_RETURN_IF_ERROR(Initialize());
  PackingCache cache(packed);
  xnn_operator_t op = nullptr;
  const xnn_status status =
      CreateLinearOperator(weights.layout, weights.data.data(), weights.scales.data(),
                           TightStrides(weights.layout), cache.provider(), &op);
  const OperatorHandle handle(op);
  if (cache.reserved_bytes().has_value() && *cache.reserved_bytes() != packed.size()) {
    return WrongSize(*cache.reserved_bytes(), packed.size());
  }
  return CheckStatus(status, "packing a linear layer");
}

size_t NextSliceRows(const TensorLayout& layout, size_t rows_left, uint64_t max_bytes) {
  const size_t rows = SliceRows(layout, max_bytes);
  return rows_left < rows + kRowGranularity ? rows_left : rows;
}

uint64_t LargestSliceBytes(const TensorLayout& layout, uint64_t max_bytes) {
  const size_t max_rows = SliceRows(layout, max_bytes) + kRowGranularity - 1;
  return std::min(layout.Part().output_channels, max_rows) * BytesPerRow(layout);
}

Result<SchemeFingerprints> FingerprintSchemes() {
  // Two slices; the height of the second is not a multiple of any tile.
  constexpr size_t kRows = 2 * kRowGranularity + 7;
  SchemeFingerprints fingerprints = {};
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
    const ProbeMatrix matrix(scheme, kRows);
    CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, PackedBytes(matrix.Rows(0, kRows).layout));
    CRIA_ASSIGN_OR_RETURN(const platform::PageBlock whole, platform::PageBlock::Allocate(bytes));
    CRIA_RETURN_IF_ERROR(Pack(matrix.Rows(0, kRows), whole.bytes()));
    Checksum64 fingerprint;
    fingerprint.Update(whole.bytes());
    fingerprints[static_cast<size_t>(scheme)] = fingerprint.Finish();

    CRIA_ASSIGN_OR_RETURN(const platform::PageBlock sliced, platform::PageBlock::Allocate(bytes));
    std::span<std::byte> rest = sliced.bytes();
    for (const auto& [first, count] : {std::pair(size_t{0}, kRowGranularity),
                                       std::pair(kRowGranularity, kRows - kRowGranularity)}) {
      const LinearWeights rows = matrix.Rows(first, count);
      CRIA_ASSIGN_OR_RETURN(const uint64_t slice_bytes, PackedBytes(rows.layout));
      if (slice_bytes > rest.size()) break;
      CRIA_RETURN_IF_ERROR(Pack(rows, rest.first(slice_bytes)));
      rest = rest.subspan(slice_bytes);
    }
    if (!rest.empty() || !std::ranges::equal(whole.bytes(), sliced.bytes())) {
      return Fail(
          ErrorCode::kInternal,
          Format("on this processor, XNNPACK does not pack {} by rows", SchemeName(scheme)));
    }
  }
  return fingerprints;
}

uint64_t LayoutFingerprint(const SchemeFingerprints& fingerprints) {
  Checksum64 fingerprint;
  fingerprint.Update(std::as_bytes(std::span(fingerprints)));
  return fingerprint.Finish();
}

Result<uint64_t> LayoutFingerprint() {
  CRIA_ASSIGN_OR_RETURN(const SchemeFingerprints fingerprints, FingerprintSchemes());
  return LayoutFingerprint(fingerprints);
}

}  // namespace cria::xnn
