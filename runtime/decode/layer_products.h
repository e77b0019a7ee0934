#pragma once

#include <cstddef>

#include "cria/error.h"
#include "decode/decoder.h"

namespace cria {

// For benchmarks: runs only the matrix products of a Forward over `rows` rows, of which
// `num_logits` are followed by logits, or the product of `rows` rows of logits, with any values in
// the buffers. There are no logits afterwards; the cache does not change.
Status RunLayerProducts(Decoder& decoder, size_t rows, size_t num_logits);
Status RunHeadProduct(Decoder& decoder, size_t rows);

}  // namespace cria
