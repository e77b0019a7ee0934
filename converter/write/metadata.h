#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/write/file_plan.h"
#include "model/config.h"
#include "model/vocabulary.h"

namespace cria {

// What a model file says beside its tensors. Views must outlive the call they are given to.
struct ModelDescription {
  std::string producer;
  std::string name;
  ModelConfig config;
  Vocabulary vocabulary;
  std::string_view chat_template_source;
  std::span<const int32_t> stop_token_ids;
};

// The FlatBuffer of schema/model.fbs; a plan without tensors is that of a vocabulary. Its size
// depends on neither offsets nor checksums, so that it can be known before any tensor has been
// placed or read.
std::vector<std::byte> BuildMetadata(const ModelDescription& description, const FilePlan& plan);

}  // namespace cria
