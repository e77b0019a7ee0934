#include "decode/embedding.h"

#include <cstring>

#include "core/numeric.h"
#include "ops/vector.h"
#include "weights/block_numbers.h"

namespace cria {

namespace {

constexpr uint64_t kMaxMappedBytes = uint64_t{16} << 20;

}  // namespace

uint64_t EmbeddingReader::MappedBytes(const TensorLayout& table, bool file_is_mappable) {
  const uint64_t bytes = table.data_bytes() + table.scale_bytes();
  return file_is_mappable && bytes <= kMaxMappedBytes ? bytes : 0;
}

uint64_t EmbeddingReader::BufferBytes(size_t rows, size_t channels) {
  // The largest stored row over all schemes is f32 with at least one block; it is at least as large
  // as the scales of any scheme.
  const uint64_t block = kBlockSizes.front();
  return 2 * rows * (DivideRoundingUp(channels, block) * block * sizeof(float));
}

Result<EmbeddingReader> EmbeddingReader::Create(const ModelFile& file,
                                                std::span<std::byte> row_buffer, TensorRole table,
                                                size_t token_rows) {
  EmbeddingReader reader(file, row_buffer, table, token_rows);
  const StoredTensor& stored = *reader.table_;
  if (MappedBytes(stored.layout, file.is_mappable()) != 0) {
    CRIA_ASSIGN_OR_RETURN(reader.data_, file.Map(stored.data));
    CRIA_ASSIGN_OR_RETURN(reader.scales_, file.Map(stored.scales));
  }
  return reader;
}

EmbeddingReader::EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer,
                                 TensorRole table, size_t token_rows)
    : file_(&file), table_(&file.tensor(table)), token_rows_(token_rows) {
  const TensorLayout& layout = table_->layout;
  rows_ = row_buffer.first(token_rows * layout.row_bytes());
  row_scales_ = row_buffer.last(row_buffer.size() / 2).first(token_rows * layout.row_scale_bytes());
}

Result<const std::byte*> EmbeddingReader::Rows(const platform::FileMapping& mapping,
                                               const FileRange& table, uint64_t token,
                                               std::span<std::byte> buffer) const {
  const uint64_t offset = token * buffer.size();
  if (!mapping.bytes().empty()) return mapping.bytes().data() + offset;
  CRIA_RETURN_IF_ERROR(file_->Read({table.offset + offset, buffer.size()}, buffer));
  return buffer.data();
}

Status EmbeddingReader::Read(int32_t id, float* output) const {
  const TensorLayout& layout = table_->layout;
  const auto token = static_cast<uint64_t>(id);
  CRIA_ASSIGN_OR_RETURN(const std::byte* const rows, Rows(data_, table_->data, token, rows_));
  CRIA_ASSIGN_OR_RETURN(const std::byte* const scales,
                        Rows(scales_, table_->scales, token, row_scales_));
  for (size_t row = 0; row < token_rows_; ++row) {
    Dequantize(rows + row * layout.row_bytes(), scales + row * layout.row_scale_bytes(),
               output + row * layout.input_channels);
  }
  return {};
}

void EmbeddingReader::Dequantize(const std::byte* row, const std::byte* scales,
                                 float* output) const {
  const TensorLayout& layout = table_->layout;
  if (const BlockFormat* const format = layout.block_format(); format != nullptr) {
    const std::span weights(output, layout.input_channels);
    DequantizeBlocks(*format, row, weights);
    if (layout.factor != 1.0f) {
      for (float& weight : weights) weight *= layout.factor;
    }
    return;
  }
  switch (layout.scheme) {
    case Scheme::kF32:
      std::memcpy(output, row, layout.input_channels * sizeof(float));
      break;
    case Scheme::kQc8w:
      ops::DequantizeQc8w(reinterpret_cast<const int8_t*>(row),
                          *reinterpret_cast<const float*>(scales), layout.input_channels, output);
      break;
    case Scheme::kQb4w:
      ops::DequantizeQb4w(reinterpret_cast<const uint8_t*>(row),
                          reinterpret_cast<const uint16_t*>(scales), layout.block_size,
                          layout.input_channels, output);
      break;
    default:
      break;
  }
}

}  // namespace cria
