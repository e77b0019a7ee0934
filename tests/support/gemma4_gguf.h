#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "support/gguf_writer.h"

namespace cria::support {

// For family_gguf.h: the keys, and the tensor that layers without a window rotate by, of Gemma 4.
void AddGemma4(const nlohmann::json& config, GgufWriter& writer);

// ggml's name of a tensor.
std::string Gemma4GgmlName(const std::string& name);

}  // namespace cria::support
