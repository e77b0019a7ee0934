#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "decode/decoder.h"
#include "decode/kv_pages.h"
#include "model/config.h"
#include "ops/kv_cache_view.h"

namespace cria {

// Says how the bytes of a KvState are laid out and computed. It changes if either does.
inline constexpr uint32_t kKvStateVersion = 2;
// The version of a state whose keys have a SequenceShift, which stands beside it.
inline constexpr uint32_t kShiftedKvStateVersion = 3;

// The keys and values of the first tokens of a sequence, as far as later tokens need them: a layer
// with a window has those of the last tokens only. They are divided into blocks: there is one for
// each page of the sequence in each layer, in the order of the layers and then of the pages. A
// block has, for each head, the rows of keys, those of values and, if the type is kInt8, the scales
// of both. The order does not depend on which pages of the KV cache the sequence holds. A recurrent
// layer has one block instead, whose only head is the state after these tokens, and a layer without
// keys and values of its own has none.
class KvState {
 public:
  // `num_tokens` may be more than the sequence has, unless Rows is called.
  KvState(Decoder& decoder, SequenceId sequence, size_t num_tokens);

  // Sizes do not depend on the sequence, but Rows and MakeResident do.
  void set_sequence(SequenceId sequence) { sequence_ = sequence; }

  size_t num_blocks() const { return layers_.back().first_block; }
  // Counts the heads of all ranks together, if there are several.
  size_t NumHeads(size_t block) const;
  uint64_t bytes() const { return BlockOffset(num_blocks()); }
  // From the beginning of the state.
  uint64_t BlockOffset(size_t block) const;

  // The rows of a head in a block, where they are in the KV cache. If other ranks have a part of
  // the block, these are copies, which Exchange brings here, or from here to their places. There is
  // room for one block of all states: who uses it holds HoldBlock. So is a state behind which
  // tokens are kept that it has not taken up: there is room for one, and one thread at a time may
  // ask for it. After Sequences::Restore, all states are in their places.
  KvParts Rows(size_t block, size_t head) const;
  // Whether all numbers of a head in a block are finite. `rows` are those of Rows.
  bool AreFinite(size_t block, const KvParts& rows) const;
  bool has_ranks() const { return decoder_.ranks().num_ranks() > 1; }
  // Holds nothing if there are no other ranks.
  std::unique_lock<std::mutex> HoldBlock() const;
  // Does nothing if there are no other ranks.
  Status Exchange(size_t block, KvDirection direction) const;

  // Makes the memory of a layer's rows resident. Without this, each of its pages is made when it is
  // first written, which takes longer.
  void MakeResident(size_t layer) const;

 private:
  struct Layer {
    size_t first_block;  // Counted over all blocks.
    uint64_t offset;
    size_t first_token;
  };

  // Null unless the layer is recurrent.
  const StateCache::Layer* StatesOf(size_t layer) const;
  size_t NumKeyValueHeads(size_t layer) const;
  // Channels of one token, in all heads of a layer.
  uint64_t RowBytes(size_t layer) const;
  size_t LayerOf(size_t block) const;
  // The first token of the block, which is in this layer, and the one behind its last.
  std::pair<size_t, size_t> Tokens(size_t block, size_t layer) const;
  // Where the rows of the block are in each head of the cache.
  KvRows RowsOf(size_t block) const;
  KeptState StateOf(size_t layer) const;

  Decoder& decoder_;
  SequenceId sequence_;
  const size_t num_tokens_;
  std::vector<Layer> layers_;           // The last one is the end of the others.
  mutable std::vector<float> scratch_;  // For one state.
};

// Whether all keys, values and scales are finite numbers. `rows` are those of KvState::Rows.
bool AreFinite(const KvParts& rows, KvType type);

// A hash of the windows and rotary frequencies in use. With dynamic rope, frequencies depend on the
// length of the context.
uint64_t AttentionFingerprint(const ModelConfig& config, size_t context_tokens);
// The hash for a decoder has what depends on its options, too: the windows whose rows its layers
// keep, and whether offsets are subtracted from keys.
uint64_t AttentionFingerprint(const ModelConfig& config, const Decoder& decoder);

}  // namespace cria
