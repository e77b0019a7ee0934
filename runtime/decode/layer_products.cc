#include "decode/layer_products.h"

#include "core/format.h"

namespace cria {

Status RunLayerProducts(Decoder& decoder, size_t rows) {
  if (rows > decoder.chunk_tokens()) {
    return Fail(ErrorCode::kOutOfRange,
                Format("{} rows do not fit a chunk of {}", rows, decoder.chunk_tokens()));
  }
  decoder.head().Begin({});
  for (const DecoderLayer& layer : decoder.layers()) {
    CRIA_RETURN_IF_ERROR(layer.mixer->RunProducts(rows));
    CRIA_RETURN_IF_ERROR(layer.feed_forward->RunProducts(rows));
  }
  return {};
}

Status RunHeadProduct(Decoder& decoder, size_t rows) { return decoder.head().RunProduct(rows); }

}  // namespace cria
