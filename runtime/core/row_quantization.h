#pragma once

#include <cstdint>

namespace cria {

// How one row of activations was quantized: value = scale * (int8 - zero_point). The layout is that
// of XNNPACK's xnn_quantization_params.
struct RowQuantization {
  int32_t zero_point;
  float scale;
};

}  // namespace cria
