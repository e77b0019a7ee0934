#include "llm/embedding.h"

#include <cstring>

#include "ops/vector.h"

namespace cria {

EmbeddingReader::EmbeddingReader(const ModelFile& file, std::span<std::byte> row_buffer)
    : file_(file), table_(file.tensor(TensorRole::kEmbedTokens)) {
  const TensorLayout& layout = table_.layout;
  row_ = row_buffer.first(layout.row_bytes());
  row_scales_ = row_buffer.last(row_buffer.size() / 2).first(layout.row_scale_bytes());
}

Status EmbeddingReader::Read(int32_t id, float* output) const {
  const TensorLayout& layout = table_.layout;
  const auto index = static_cast<uint64_t>(id);
  CRIA_RETURN_IF_ERROR(file_.Read({table_.data.offset + index * row_.size(), row_.size()}, row_));
  if (!row_scales_.empty()) {
    CRIA_RETURN_IF_ERROR(file_.Read(
        {table_.scales.offset + index * row_scales_.size(), row_scales_.size()}, row_scales_));
  }
  switch (layout.scheme) {
    case Scheme::kF32:
      std::memcpy(output, row_.data(), layout.input_channels * sizeof(float));
      break;
    case Scheme::kQc8w:
      ops::DequantizeQc8w(reinterpret_cast<const int8_t*>(row_.data()),
                          *reinterpret_cast<const float*>(row_scales_.data()),
                          layout.input_channels, output);
      break;
    case Scheme::kQb4w:
      ops::DequantizeQb4w(reinterpret_cast<const uint8_t*>(row_.data()),
                          reinterpret_cast<const uint16_t*>(row_scales_.data()), layout.block_size,
                          layout.input_channels, output);
      break;
  }
  return {};
}

}  // namespace cria
