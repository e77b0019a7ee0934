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

// How a checkpoint is stored.
struct CheckpointFormat {
  StorageType storage = StorageType::kF32;
  size_t shards = 1;  // 1: model.safetensors; more: numbered files and an index.
  TokenizerFiles tokenizer = TokenizerFiles::kByteLevelJson;
  size_t num_special_tokens = kNumNamedSpecialTokens;
  bool merges_as_pairs = false;
  ChatTemplateText chat_template = ChatTemplateText::kNone;
};

// The tensors of a model with this configuration, in the order in which a forward pass uses them.
std::vector<TensorShape> CheckpointTensors(const reference::ReferenceConfig& config);

// Fills `values` with the elements of a tensor from `first` on.
using TensorSource =
    std::function<void(const TensorShape& tensor, size_t first, std::span<float> values)>;

// Writes config.json, generation_config.json, the weights and the tokenizer into `directory`, which
// is created if it does not exist. `source` is called for the weights in order, a megabyte at a
// time. If a file cannot be written, the functions of this header throw std::runtime_error.
void WriteCheckpoint(const reference::ReferenceConfig& config,
                     const std::vector<TensorShape>& tensors, const TensorSource& source,
                     const std::filesystem::path& directory, const CheckpointFormat& format);

// Writes a model in memory: all of `model.tensors`, rounded to the storage type.
void WriteHuggingFaceDirectory(const reference::ReferenceModel& model,
                               const std::filesystem::path& directory,
                               const CheckpointFormat& format = {});

}  // namespace cria::support
