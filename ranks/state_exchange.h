#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/collective.h"
#include "cria/error.h"
#include "decode/rank_link.h"
#include "decode/state_cache.h"
#include "model/config.h"
#include "ranks/divide.h"

namespace cria::ranks {

// Brings the parts of a recurrent layer's state to rank 0, or from there to the ranks that have
// them. The state is that of a short convolution: rows, of which each rank has some channels.
class StateExchange {
 public:
  // Numbers for which a rank needs memory; `config` is that of its part.
  static uint64_t NumElements(const ModelConfig& config, std::span<const RankShare> shares,
                              size_t rank);

  StateExchange() = default;
  // All of these must outlive the object; `memory` has NumElements.
  StateExchange(Collective& collective, std::span<const RankShare> shares, std::span<float> memory);

  // Called by all ranks, each with its own part of the state.
  Status Exchange(const StateSize& size, std::span<float> own, KvDirection direction) {
    return direction == KvDirection::kToRank0 ? Gather(size, own) : Scatter(size, own);
  }
  size_t NumWholeElements(const StateSize& size) const;
  // On rank 0, the whole state that was brought here or is to be taken from here.
  std::span<float> Whole() const { return memory_.first(memory_.size() / 2); }
  // On other ranks, memory for one state.
  std::span<float> Scratch() const { return memory_; }

 private:
  Status Gather(const StateSize& size, std::span<float> own);
  Status Scatter(const StateSize& size, std::span<float> own);
  // The part of a rank, in the order in which it is sent.
  std::span<float> Packed(const StateSize& size, size_t rank) const;
  // Copies between a rank's part and its channels of the whole state.
  void ToWhole(const StateSize& size, size_t rank, std::span<const float> part) const;
  void FromWhole(const StateSize& size, size_t rank, std::span<float> part) const;

  Collective* collective_ = nullptr;
  std::span<const RankShare> shares_;
  // On rank 0, the whole state, and behind it the parts of all ranks.
  std::span<float> memory_;
  // On rank 0, with one element for each rank.
  std::vector<std::span<std::byte>> received_;
  std::vector<std::span<const std::byte>> sent_;
};

}  // namespace cria::ranks
