#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

#include "reference/reference_model.h"
#include "support/byte_level_tokenizer.h"
#include "support/safetensors_writer.h"

namespace cria::support {

enum class TokenizerFiles { kNone, kByteLevelJson };

// How a checkpoint lies on disk.
struct CheckpointFormat {
  StorageType storage = StorageType::kF32;
  size_t shards = 1;  // 1: model.safetensors; more: numbered files and an index.
  TokenizerFiles tokenizer = TokenizerFiles::kByteLevelJson;
  size_t num_special_tokens = kNumNamedSpecialTokens;
  bool merges_as_pairs = false;
  ChatTemplateText chat_template = ChatTemplateText::kNone;
};

// The tensors of a model of this configuration, in the order of their use.
std::vector<TensorShape> CheckpointTensors(const reference::ReferenceConfig& config);

// Makes elements `first` and on of a tensor.
using TensorSource =
    std::function<void(const TensorShape& tensor, size_t first, std::span<float> values)>;

// Writes config.json, generation_config.json, the weights and the tokenizer into `directory`, which
// is made where it is missing. The weights are asked for in order, a megabyte at a time. All
// functions of this header throw std::runtime_error.
void WriteCheckpoint(const reference::ReferenceConfig& config,
                     const std::vector<TensorShape>& tensors, const TensorSource& source,
                     const std::filesystem::path& directory, const CheckpointFormat& format);

// The same for a model in memory: all of `model.tensors`, whatever they are, rounded to the
// storage.
void WriteHuggingFaceDirectory(const reference::ReferenceModel& model,
                               const std::filesystem::path& directory,
                               const CheckpointFormat& format = {});

}  // namespace cria::support
