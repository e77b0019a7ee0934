#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "decode/decoder_options.h"
#include "decode/recurrent_states.h"

namespace cria {

// The numbers of a recurrent layer's state, and of what a later token adds to it.
struct StateSize {
  size_t state_elements = 0;
  size_t row_elements = 0;
};

// Which state of a layer is meant: that after the first `num_rows` rows that are kept behind the
// state in a place.
struct KeptState {
  size_t layer = 0;
  size_t place = 0;
  size_t num_rows = 0;
};

// The states of all recurrent layers, in the places that RecurrentStates gives to sequences and
// checkpoints.
class StateCache {
 public:
  struct Regions {
    // f32: of each recurrent layer [places][state_elements + max_rows * row_elements]
    ArenaLayout::RegionId states;
  };
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  // What a token reads of the states of all layers.
  static uint64_t BytesPerToken(const ModelConfig& config);

  StateCache(const DecoderShape& shape, const Regions& regions, const ArenaView& arena);

  // What a layer keeps in a place: its state, [state_elements], and behind it what later tokens
  // add, [max_rows * row_elements], in an order that the layer's mixer chooses.
  struct Layer {
    float* places = nullptr;  // Null for a layer that is not recurrent.
    size_t place_elements = 0;
    StateSize size;
    size_t max_rows = 0;

    float* State(size_t place) const { return places + place * place_elements; }
  };
  const Layer& layer(size_t index) const { return layers_[index]; }

  // Copies what all layers keep.
  void Copy(std::span<const StateCopy> copies, const ThreadPool& pool) const;

 private:
  std::vector<Layer> layers_;  // [num_keeping_layers]
};

}  // namespace cria
