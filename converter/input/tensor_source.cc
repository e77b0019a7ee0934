#include "converter/input/tensor_source.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

uint64_t BytesOf(ElementType type, uint64_t elements) {
  const StoredBlock block = BlockOf(type);
  return elements / block.elements * block.bytes;
}

std::string IndexText(const TensorSource& source, uint64_t element) {
  std::string text;
  for (size_t i = source.shape.size(); i-- > 0;) {
    text = Format("{}{}{}", element % source.shape[i], text.empty() ? "" : ", ", text);
    element /= source.shape[i];
  }
  return text;
}

// The stored row that is row `row` of the tensor: of those that are chosen, or in half-split order.
uint64_t StoredRow(uint64_t row, const TensorSource& source) {
  const TensorSource::RowChoice& choice = source.row_choice;
  if (choice.period != 0) {
    return row / choice.count * choice.period + choice.first + row % choice.count;
  }
  const uint64_t head_dim = source.interleaved_head_dim;
  if (head_dim == 0) return row;
  const uint64_t rotated =
      source.interleaved_channels == 0 ? head_dim : source.interleaved_channels;
  const uint64_t half = rotated / 2;
  const uint64_t in_head = row % head_dim;
  if (in_head >= rotated) return row;
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

TensorShard ShardOf(const TensorSource& source, uint64_t index) {
  return index == 0 ? TensorShard{source.file, source.offset} : source.other_shards[index - 1];
}

// Reads one stored row, which is in one shard or has a part in each shard.
Status ReadRow(const TensorSource& source, uint64_t row, std::span<std::byte> bytes) {
  const uint64_t num_shards = source.other_shards.size() + 1;
  if (num_shards == 1) return source.file->ReadAt(source.offset + row * bytes.size(), bytes);
  if (!source.is_split_by_columns) {
    const uint64_t rows_per_shard = source.shape.front() / num_shards;
    const TensorShard shard = ShardOf(source, row / rows_per_shard);
    return shard.file->ReadAt(shard.offset + row % rows_per_shard * bytes.size(), bytes);
  }
  const size_t share_bytes = bytes.size() / num_shards;
  for (uint64_t i = 0; i < num_shards; ++i) {
    const TensorShard shard = ShardOf(source, i);
    CRIA_RETURN_IF_ERROR(shard.file->ReadAt(shard.offset + row * share_bytes,
                                            bytes.subspan(i * share_bytes, share_bytes)));
  }
  return {};
}

// Reads one stored row of MXFP4 whose exponents are apart, as blocks of GGML.
Status ReadMxfp4Row(const TensorSource& source, uint64_t row, std::span<std::byte> blocks) {
  constexpr size_t kCodeBytes = 16;
  const size_t block_bytes = BlockOf(ElementType::kMxfp4).bytes;
  const size_t num_blocks = blocks.size() / block_bytes;
  std::vector<std::byte> exponents(num_blocks);
  std::vector<std::byte> codes(num_blocks * kCodeBytes);
  CRIA_RETURN_IF_ERROR(
      source.exponents.file->ReadAt(source.exponents.offset + row * num_blocks, exponents));
  CRIA_RETURN_IF_ERROR(source.file->ReadAt(source.offset + row * codes.size(), codes));
  for (size_t b = 0; b < num_blocks; ++b) {
    const auto code = [&](size_t i) {
      return codes[b * kCodeBytes + i / 2] >> (i % 2 * 4) & std::byte{15};
    };
    std::byte* const block = blocks.data() + b * block_bytes;
    block[0] = exponents[b];
    for (size_t i = 0; i < kCodeBytes; ++i) block[1 + i] = code(i) | code(kCodeBytes + i) << 4;
  }
  return {};
}

Status ReadRaw(const TensorSource& source, uint64_t first, uint64_t elements,
               std::span<std::byte> raw) {
  const bool has_exponents_apart = source.exponents.file != nullptr;
  if (source.other_shards.empty() && source.interleaved_head_dim == 0 &&
      source.row_choice.period == 0 && !has_exponents_apart) {
    return source.file->ReadAt(source.offset + BytesOf(source.type, first), raw);
  }
  const uint64_t row_elements = source.num_elements() / source.shape.front();
  const size_t row_bytes = BytesOf(source.type, row_elements);
  for (uint64_t i = 0; i < elements / row_elements; ++i) {
    const uint64_t row = StoredRow(first / row_elements + i, source);
    const std::span<std::byte> bytes = raw.subspan(i * row_bytes, row_bytes);
    CRIA_RETURN_IF_ERROR(has_exponents_apart ? ReadMxfp4Row(source, row, bytes)
                                             : ReadRow(source, row, bytes));
  }
  return {};
}

void ChangeElements(const TensorSource& source, uint64_t first, std::span<float> elements) {
  const TensorSource::RowFactor& rows = source.row_factor;
  if (source.is_logarithm) {
    for (float& element : elements) element = std::exp(element);
  }
  const bool is_changed = source.is_logarithm || source.addend != 0.0f || source.factor != 1.0f ||
                          source.column_factors != nullptr;
  if (!is_changed && rows.period == 0) return;
  constexpr float kLargest = std::numeric_limits<float>::max();
  const uint64_t row_elements = source.num_elements() / source.shape.front();
  for (uint64_t i = 0; i < elements.size(); ++i) {
    float factor = source.factor;
    if (rows.period != 0 && (first + i) / row_elements % rows.period < rows.count) {
      factor *= rows.factor;
    }
    if (source.column_factors != nullptr) {
      factor *= (*source.column_factors)[(first + i) % row_elements];
    }
    elements[i] = std::clamp((source.addend + elements[i]) * factor, -kLargest, kLargest);
  }
}

}  // namespace

uint64_t TensorSource::num_elements() const {
  uint64_t elements = 1;
  for (const uint64_t extent : shape) elements *= extent;
  return elements;
}

uint64_t TensorSource::num_bytes() const { return BytesOf(type, num_elements()); }

std::string TensorSource::ShapeText() const {
  std::string text;
  for (const uint64_t extent : shape) {
    text += Format("{}{}", text.empty() ? "" : ", ", extent);
  }
  return "[" + text + "]";
}

TensorSource ChooseRows(const TensorSource& source, const TensorSource::RowChoice& choice) {
  TensorSource rows = source;
  rows.row_choice = choice;
  rows.shape.front() = source.shape.front() / choice.period * choice.count;
  return rows;
}

TensorSource RowsOf(const TensorSource& source, uint64_t first_row, uint64_t num_rows) {
  TensorSource rows = source;
  const uint64_t skipped = source.num_elements() / source.shape.front() * first_row;
  if (rows.exponents.file != nullptr) {
    rows.exponents.offset += skipped / BlockOf(source.type).elements;
    rows.offset += skipped / 2;
  } else {
    rows.offset += BytesOf(source.type, skipped);
  }
  rows.shape.front() = num_rows;
  return rows;
}

bool CanKeepCodes(const TensorSource& source) {
  return BlockFormatOf(source.type) != nullptr && source.addend == 0.0f && !source.is_logarithm &&
         source.row_factor.period == 0 && source.column_factors == nullptr &&
         source.other_shards.empty() && !source.is_transposed &&
         source.shape.back() % BlockOf(source.type).elements == 0;
}

Status TensorReader::ReadTransposed(const TensorSource& source, uint64_t first,
                                    std::span<float> destination) {
  const TensorSource::RowChoice& choice = source.row_choice;
  const uint64_t rows =
      choice.period == 0 ? source.shape[0] : source.shape[0] / choice.count * choice.period;
  const uint64_t columns = source.shape[1];
  stored_order_.resize(rows * columns);
  raw_.resize(BytesOf(source.type, rows * columns));
  CRIA_RETURN_IF_ERROR(source.file->ReadAt(source.offset, raw_));
  Dequantize(source.type, raw_.data(), stored_order_);
  for (uint64_t i = 0; i < destination.size(); ++i) {
    const uint64_t element = first + i;
    destination[i] = stored_order_[element % columns * rows + StoredRow(element / columns, source)];
  }
  return {};
}

Status TensorReader::Read(const TensorSource& source, uint64_t first,
                          std::span<float> destination) {
  if (source.is_transposed) {
    CRIA_RETURN_IF_ERROR(ReadTransposed(source, first, destination));
  } else {
    raw_.resize(BytesOf(source.type, destination.size()));
    CRIA_RETURN_IF_ERROR(ReadRaw(source, first, destination.size(), raw_));
    Dequantize(source.type, raw_.data(), destination);
  }
  const auto bad = std::ranges::find_if_not(destination, [](float x) { return std::isfinite(x); });
  if (bad == destination.end()) {
    ChangeElements(source, first, destination);
    return {};
  }
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: tensor \"{}\" holds infinity or NaN at [{}]; the checkpoint is "
                     "broken or was trained to divergence",
                     source.file->path(), Quotable(source.name),
                     IndexText(source, first + static_cast<uint64_t>(bad - destination.begin()))));
}

}  // namespace cria
