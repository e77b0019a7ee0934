#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "cria/error.h"
#include "decode/batch.h"
#include "decode/decoder_memory.h"
#include "decode/kv_pages.h"
#include "decode/kv_rows.h"
#include "model/model_file.h"
#include "ops/kv_cache_view.h"

namespace cria {

enum class KvDirection : uint8_t { kToRank0, kFromRank0 };

// Connects a model with those of other ranks, each of which computes a part of every layer. A model
// that runs alone has none. Rank 0 decides what is computed, and the others follow it.
// runtime/ranks implements this, which the library does not link.
class RankLink {
 public:
  virtual ~RankLink() = default;

  // Leaves only the part of this rank in `model`.
  virtual Status TakePart(ModelFile& model) = 0;
  // Private memory for what is sent and received.
  virtual uint64_t MemoryBytes(const ModelConfig& config, const DecoderOptions& options) const = 0;
  // Allocates that memory.
  virtual Status Prepare(const ModelConfig& config, const DecoderOptions& options) = 0;

  // Rank 0 tells the others what it is going to compute. On other ranks, these do nothing.
  // The sequences of the batch have their pages already.
  virtual Status BeginForward(const Batch& batch, const KvPages& pages) = 0;
  virtual Status BeginMove(std::span<const PageMove> moves) = 0;
  virtual Status BeginLogits(size_t first, size_t rows) = 0;

  // `values`, rows of the hidden size, become their sums over all ranks, which are the same bits on
  // every rank.
  virtual Status Sum(std::span<float> values) = 0;
  // Normalizes queries and keys as ModelConfig::joint_qk_norm says, over the heads of all ranks.
  // `qkv` are rows of this rank's queries, keys and values, [rows][qkv_channels], to which `bias`
  // is added first unless it is null; the weights are [query_channels] and [key_value_channels].
  virtual Status NormalizeJointly(std::span<float> qkv, const float* bias, const float* q_norm,
                                  const float* k_norm) = 0;
  // `logits` begin with this rank's part of `rows` rows, one behind another. On rank 0, they become
  // whole rows. If the batch says how many candidates are needed, logits of other ranks that cannot
  // be among them become minus infinity.
  virtual Status GatherLogits(std::span<float> logits, size_t rows) = 0;

  // The heads of keys and values of the whole model.
  virtual size_t num_key_value_heads() const = 0;
  // Held from before rows are brought to KvRowsOf, or written there, until they have been used:
  // there is one place for all threads.
  virtual std::unique_lock<std::mutex> HoldKvRows() = 0;
  // On rank 0, for session files: brings rows of all heads, of one page at most, to KvRowsOf, or
  // from there to the ranks that have them. `cache` is that of the layer here.
  virtual Status ExchangeKvRows(const KvRows& rows, const ops::KvCacheView& cache,
                                KvDirection direction) = 0;
  // The rows of a head of the whole model.
  virtual KvParts KvRowsOf(const KvRows& rows, const ops::KvCacheView& cache, size_t head) = 0;
};

}  // namespace cria
