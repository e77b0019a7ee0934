#include "converter/gguf/gguf_gpt_oss.h"

#include <cstdint>
#include <string>

#include "core/format.h"

namespace cria {

Status ReadGgufGptOss(const GgufMetadata& metadata, const GgufArchitecture& architecture,
                      ModelConfig& config) {
  config.router_bias = config.experts_bias = config.attn_sinks = true;
  config.swiglu_alpha = 1.702f;
  config.swiglu_limit = 7.0f;
  // The softmax of the chosen scores.
  constexpr uint32_t kSoftmaxOfChosen = 3;
  const std::string key = Format("{}.expert_gating_func", architecture.name);
  CRIA_ASSIGN_OR_RETURN(const uint32_t function, metadata.Integer(key, kSoftmaxOfChosen));
  if (function == kSoftmaxOfChosen) return {};
  return metadata.Bad(key, Format("is {}, which this version does not support", function),
                      ErrorCode::kUnsupported);
}

}  // namespace cria
