#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "converter/write/file_plan.h"
#include "model/config.h"
#include "model/pooling.h"
#include "model/reranking.h"
#include "model/vocabulary.h"

namespace cria {

// What a model file contains besides its tensors. Views must be valid during the call.
struct ModelDescription {
  std::string producer;
  std::string name;
  ModelConfig config;
  Vocabulary vocabulary;
  std::string_view chat_template_source;
  std::span<const int32_t> stop_token_ids;
  bool prefers_f16_cache = false;
  std::optional<Pooling> pooling = {};
  std::optional<Reranking> reranking = {};
};

// The FlatBuffer of schema/model.fbs; a plan without tensors is for a file with only a vocabulary.
// Its size depends neither on offsets nor on checksums, so that it is known before tensors are
// placed or read; with prefers_f16_cache, it is larger by less than kMetadataRoom.
std::vector<std::byte> BuildMetadata(const ModelDescription& description, const FilePlan& plan);

}  // namespace cria
