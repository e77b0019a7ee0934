#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "reference/reference_model.h"
#include "support/gguf_writer.h"

namespace cria::support {

// For family_gguf.h: the architectures of the families of 2025 and 2026.

// The keys that the fields of config.json become, in addition to those of all architectures.
void AddRecentKeys(const std::string& architecture, const nlohmann::json& config,
                   GgufWriter& writer);

// Changes a tensor as llama.cpp's converter does.
void ChangeRecentTensor(const std::string& architecture, const nlohmann::json& config,
                        std::string_view name, reference::ReferenceTensor& tensor);

// ggml's name of a tensor; empty if it is the same as in other architectures.
std::string RecentGgmlName(const std::string& architecture, const std::string& name);

// Whether rows of queries and keys change their places.
bool IsRecentAndInterleaved(const std::string& architecture);

}  // namespace cria::support
