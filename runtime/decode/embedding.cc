#include "decode/embedding.h"

#include <cstring>

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

Result<EmbeddingReader> EmbeddingReader::Create(const ModelFile& file,
                                                std::span<std::byte> row_buffer) {
  EmbeddingReader reader(file, row_buffer);
  const StoredTensor& table = *reader.table_;
  if (MappedBytes(table.layout, file.is_mappable()) != 0) {
    CRIA_ASSIGN_OR_RETURN(reader.data_, file.Map(table.data));
    CRIA_ASSIGN_OR_RETURN(reader.scales_, file.Map(table.scales));
  }
  return reader;
}

EmbeddingReader::EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer)
    : file_(&file), table_(&file.tensor(TensorRole::kEmbedTokens)) {
  const TensorLayout& layout = table_->layout;
  row_ = row_buffer.first(layout.row_bytes());
  row_scales_ = row_buffer.last(row_buffer.size() / 2).first(layout.row_scale_bytes());
}

Result<const std::byte*> EmbeddingReader::Row(const platform::FileMapping& mapping,
                                              const FileRange& table, uint64_t index,
                                              std::span<std::byte> buffer) const {
  const uint64_t offset = index * buffer.size();
  if (!mapping.bytes().empty()) return mapping.bytes().data() + offset;
  CRIA_RETURN_IF_ERROR(file_->Read({table.offset + offset, buffer.size()}, buffer));
  return buffer.data();
}

Status EmbeddingReader::Read(int32_t id, float* output) const {
  const TensorLayout& layout = table_->layout;
  const auto index = static_cast<uint64_t>(id);
  CRIA_ASSIGN_OR_RETURN(const std::byte* const row, Row(data_, table_->data, index, row_));
  CRIA_ASSIGN_OR_RETURN(const std::byte* const scales,
                        Row(scales_, table_->scales, index, row_scales_));
  if (const BlockFormat* const format = layout.block_format(); format != nullptr) {
    const std::span weights(output, layout.input_channels);
    DequantizeBlocks(*format, row, weights);
    if (layout.factor != 1.0f) {
      for (float& weight : weights) weight *= layout.factor;
    }
    return {};
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
  return {};
}

}  // namespace cria
