#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cria::cli {

// A checkpoint on the hub that has a short name.
struct KnownModel {
  std::string_view name;     // "qwen3-0.6b"
  std::string_view source;   // "hf:Qwen/Qwen3-0.6B"
  std::string_view licence;  // As the hub names it.
  uint64_t download_bytes = 0;
  uint64_t file_bytes = 0;  // The size of the model file, in int4.
  uint64_t peak_bytes = 0;  // The memory with a context of 2,048 tokens, by cria-convert plan.
};

std::span<const KnownModel> KnownModels();

// Null if no model has this name.
const KnownModel* FindKnownModel(std::string_view name);

// The name of the smallest board whose memory is enough for the model; empty if there is none.
std::string_view SmallestBoard(const KnownModel& model);

}  // namespace cria::cli
