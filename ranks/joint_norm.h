#pragma once

#include <cstddef>
#include <span>

#include "core/collective.h"
#include "cria/error.h"
#include "model/config.h"
#include "ranks/divide.h"

namespace cria::ranks {

// Normalizes the queries of all heads together, and the keys of all heads, although each rank has
// only some heads (ModelConfig::joint_qk_norm): the ranks add up the squares.
class JointNorm {
 public:
  // How many numbers are added up for so many rows: one for queries and one for keys.
  static constexpr size_t NumSums(size_t rows) { return 2 * rows; }

  JointNorm() = default;
  // `part` is the configuration of this rank's part. `sums` has room for the largest number of
  // rows, and must outlive the object.
  JointNorm(const ModelConfig& part, std::span<const RankShare> shares, size_t rank,
            std::span<float> sums);

  // As RankMath::NormalizeJointly.
  Status Normalize(std::span<float> qkv, const float* bias, const float* q_norm,
                   const float* k_norm, Collective& collective) const;

 private:
  // How many channels one row has.
  struct Channels {
    size_t queries = 0;
    size_t keys = 0;
    size_t row = 0;
  };

  Channels own_;
  Channels whole_;  // All ranks' channels.
  // Keys that an earlier rank has, too, are counted there.
  bool counts_keys_ = true;
  float epsilon_ = 0.0f;
  std::span<float> sums_;
};

}  // namespace cria::ranks
