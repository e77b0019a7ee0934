#include "decode/profile.h"

#include <numeric>

namespace cria {

std::string_view OperatorKindName(OperatorKind kind) {
  static constexpr std::array<std::string_view, kNumOperatorKinds> kNames = {
      "embedding",   "rotation", "norm",    "qkv_proj",     "rope",       "attention",
      "convolution", "o_proj",   "routing", "gate_up_proj", "activation", "down_proj",
      "per_layer",   "mtp",      "lm_head", "sampling"};
  return kNames[static_cast<size_t>(kind)];
}

Profile::Clock::duration Profile::total() const {
  return std::accumulate(times_.begin(), times_.end(), Clock::duration::zero());
}

}  // namespace cria
