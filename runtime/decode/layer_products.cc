#include "decode/layer_products.h"

#include "core/format.h"

namespace cria {

Status RunLayerProducts(Decoder& decoder, size_t rows, size_t num_logits) {
  if (rows > decoder.chunk_tokens()) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} rows do not fit a chunk of {}", rows, decoder.chunk_tokens()));
  }
  decoder.head().Begin(0);
  for (const DecoderLayer& layer : decoder.layers()) {
    const size_t mixed_rows = layer.is_last_to_store ? num_logits : rows;
    CRIA_RETURN_IF_ERROR(layer.mixer->RunProducts(rows, mixed_rows));
    if (mixed_rows == 0) break;
    CRIA_RETURN_IF_ERROR(layer.feed_forward->RunProducts(mixed_rows));
    if (layer.per_layer != nullptr) {
      CRIA_RETURN_IF_ERROR(layer.per_layer->RunProducts(mixed_rows));
    }
    rows = mixed_rows;
  }
  return {};
}

Status RunHeadProduct(Decoder& decoder, size_t rows) { return decoder.head().RunProduct(rows); }

}  // namespace cria
