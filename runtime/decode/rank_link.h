#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "cria/error.h"
#include "decode/batch.h"
#include "decode/decoder_options.h"
#include "decode/kv_pages.h"
#include "decode/kv_rows.h"
#include "decode/state_cache.h"
#include "model/model_file.h"
#include "ops/kv_cache_view.h"

namespace cria {

// What the ranks that compute a model together do in a layer or the head, each with its part. All
// call the same functions in the same order.
class RankMath {
 public:
  virtual ~RankMath() = default;

  // 1: this rank computes the whole model.
  virtual size_t num_ranks() const = 0;
  // `values`, rows of the hidden size, become their sums over all ranks, which are the same bits on
  // every rank.
  virtual Status Sum(std::span<float> values) = 0;
  // Unless this rank is alone: normalizes queries and keys as ModelConfig::joint_qk_norm says, over
  // the heads of all ranks. `qkv` are rows of this rank's queries, keys and values, [rows]
  // [qkv_channels], to which `bias` is added first unless it is null; the weights are
  // [query_channels] and [key_value_channels].
  virtual Status NormalizeJointly(std::span<float> qkv, const float* bias, const float* q_norm,
                                  const float* k_norm) = 0;
  // `logits` begin with this rank's part of `rows` rows, one behind another. On rank 0, they become
  // whole rows. If the batch says how many candidates are needed, logits of other ranks that cannot
  // be among them become minus infinity.
  virtual Status GatherLogits(std::span<float> logits, size_t rows) = 0;
};

// What the stores of sequences leave to be carried out: moves of pages, and copies of states.
struct StoreMoves {
  std::span<const PageMove> pages;
  std::span<const StateCopy> states;

  bool empty() const { return pages.empty() && states.empty(); }
};

// Rank 0 tells the others what it is going to compute, and they follow it. On other ranks, these do
// nothing.
class RankCommands {
 public:
  virtual ~RankCommands() = default;

  // The sequences of the batch have their pages already, and `states` are their runs in recurrent
  // layers.
  virtual Status BeginForward(const Batch& batch, const KvPages& pages,
                              std::span<const StateRun> states) = 0;
  virtual Status BeginMove(const StoreMoves& moves) = 0;
  virtual Status BeginLogits(size_t first, size_t rows) = 0;
};

// How a rank gets its part of a model, and memory for what is sent and received.
class RankModel {
 public:
  virtual ~RankModel() = default;

  // Leaves only the part of this rank in `model`.
  virtual Status TakePart(ModelFile& model) = 0;
  virtual uint64_t MemoryBytes(const ModelConfig& config, const DecoderOptions& options) const = 0;
  // Allocates that memory.
  virtual Status Prepare(const ModelConfig& config, const DecoderOptions& options) = 0;
};

enum class KvDirection : uint8_t { kToRank0, kFromRank0 };

// On rank 0, for session files: the rows of the KV cache of all ranks, and the states of recurrent
// layers. `cache` is that of the layer here.
class RankCache {
 public:
  virtual ~RankCache() = default;

  // The heads of keys and values of the whole model.
  virtual size_t NumKeyValueHeads(const ops::KvCacheView& cache) const = 0;
  // Held from before rows are brought to KvRowsOf or a state to StateOf, or written there, until
  // they have been used: there is one place for all threads. A rank that is alone holds nothing.
  virtual std::unique_lock<std::mutex> HoldKvRows() = 0;
  // Brings rows of all heads, of one page at most, to KvRowsOf, or from there to the ranks that
  // have them.
  virtual Status ExchangeKvRows(const KvRows& rows, const ops::KvCacheView& cache,
                                KvDirection direction) = 0;
  // The rows of a head of the whole model.
  virtual KvParts KvRowsOf(const KvRows& rows, const ops::KvCacheView& cache, size_t head) = 0;

  // The numbers of a state of the whole model, of which `size` has this rank's part.
  virtual size_t NumStateElements(const StateSize& size) const = 0;
  // Brings the parts of a state to StateOf, or from there to the ranks that have them. `own` is
  // this rank's part, of this size.
  virtual Status ExchangeState(const KeptState& state, const StateSize& size, std::span<float> own,
                               KvDirection direction) = 0;
  // The state of the whole model: `own` if this rank is alone.
  virtual std::span<float> StateOf(std::span<float> own) = 0;
};

// Connects a model with those of other ranks, each of which computes a part of every layer.
// ranks implements this, which the library does not link.
class RankLink : public RankMath, public RankCommands, public RankModel, public RankCache {};

// The link of a model that one rank computes alone. Its functions do nothing, or answer for the
// whole model.
RankLink& NoOtherRanks();

}  // namespace cria
