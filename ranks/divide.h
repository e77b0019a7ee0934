#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cria/error.h"
#include "model/config.h"
#include "model/model_file.h"

namespace cria::ranks {

// Maximum number of ranks that a model is divided among.
inline constexpr size_t kMaxRanks = 64;

// The numbers from `begin` up to and without `end`.
struct Range {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// What one rank computes of every layer. Ranks have consecutive parts, in their order. Several
// ranks may have the same head of keys and values, if there are more ranks than these: each of them
// has some of the query heads that read it.
struct RankShare {
  Range query_heads;
  Range key_value_heads;
  // Channels of short convolutions, of dense feed-forwards, of each expert, and of the shared
  // expert; empty if there are none.
  Range conv_channels;
  Range channels;
  Range expert_channels;
  Range shared_expert_channels;
  Range vocabulary;  // Rows of the output head.

  bool operator==(const RankShare&) const = default;
};

// What weights in blocks want of the columns that a rank gets: to begin at a multiple of `size` if
// possible, and always of `smallest`. 1: any column will do.
struct ColumnBlock {
  size_t size = 1;
  size_t smallest = 1;
};

struct ColumnBlocks {
  ColumnBlock o_proj;
  ColumnBlock conv_out_proj;
  ColumnBlock down_proj;
  ColumnBlock experts_down_proj;
  ColumnBlock shared_expert_down_proj;

  static ColumnBlocks Of(const ModelFile& model);

 private:
  // Null for tensors whose columns are not divided.
  ColumnBlock* Find(TensorRole role);
};

// One share for each of `weights`, which say how much of the model each rank gets in proportion to
// the others. Every rank gets something of everything. Fails if the model cannot be divided, or not
// into so many shares.
Result<std::vector<RankShare>> Divide(const ModelConfig& config, const ColumnBlocks& blocks,
                                      std::span<const double> weights);

}  // namespace cria::ranks
