#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "converter/checkpoint/reranking_material.h"
#include "converter/input/tensor_source.h"
#include "converter/tokenizer/tokenizer_import.h"
#include "cria/error.h"
#include "model/config.h"
#include "model/pooling.h"

namespace cria {

// Numbers of a family's mathematics that FoldIntoWeights puts into tensors.
struct WeightFolding {
  bool adds_one_to_norms = false;     // Norms multiply by one plus their weight.
  double embedding_multiplier = 1.0;  // Multiplies the embedding's rows, but not a tied head's.
  double logits_divisor = 1.0;
  double routed_scaling_factor = 1.0;  // Multiplies what the experts of a mixture add.
  double residual_multiplier = 1.0;    // Multiplies what attention and the feed-forward add.
  double score_factor = 1.0;  // Multiplies attention scores, in addition to 1 / sqrt(head_dim).
  bool has_unscaled_scores = false;  // Attention scores are not divided by sqrt(head_dim).
  // Multiplies products of rotated channels in addition; only if a part of each head is rotated.
  double rotated_score_factor = 1.0;
};

// A checkpoint in the form that all readers give it: a reader of another format fills in the same
// fields, with the same tensor names, and gets a branch in OpenCheckpoint.
struct Checkpoint {
  std::string name;              // Shown to users.
  std::filesystem::path folder;  // The folder of its tokenizer, or a file that contains everything.
  ModelConfig config = {};       // Valid.
  TensorSources tensors = {};    // Under Hugging Face's names; rotary rows are read in half-split
                                 // order.
  WeightFolding folding = {};    // OpenCheckpoint has applied it already.
  // What of the checkpoint is not in the model, or changed: sentences for users, without a full
  // stop.
  std::vector<std::string> notes = {};
  std::string described_by = "config.json";  // The source of `config`, for error sentences.
  // How hidden states are pooled, if the checkpoint is for embeddings.
  std::optional<Pooling> pooling = {};
  // How documents are ranked, if the checkpoint is for that.
  std::optional<RerankingMaterial> reranking = {};
  // Absent: the tokenizer is in Hugging Face's files in `folder`.
  std::optional<TokenizerMaterial> tokenizer = {};
};

// Adds a tensor under its name in the model. Fails with kInvalidFile if there is one of this name.
Status AddTensor(std::string name, TensorSource source, Checkpoint& checkpoint);

// The error for a tensor that has not the shape that the configuration calls for.
std::unexpected<Error> WrongShape(const TensorSource& source, const std::vector<uint64_t>& wanted,
                                  const Checkpoint& checkpoint);

// The part of a checkpoint that is needed without its weights.
struct CheckpointVocabulary {
  std::string name;  // Shown to users.
  TokenizerMaterial tokenizer = {};
};

// For readers of folders: the folder's own name, also if the path is ".", ends with a slash, or is
// a symbolic link of a snapshot.
std::string FolderName(const std::filesystem::path& folder);

}  // namespace cria
