#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "decode/decoder_memory.h"
#include "decode/embedding.h"
#include "decode/profile.h"
#include "decode/token_model.h"
#include "model/model_file.h"
#include "ops/kv_cache_view.h"
#include "xnn/linear.h"
#include "xnn/packed_weights.h"

namespace cria {

// The Llama decoder (Touvron et al. 2023) and that of its relatives, as the configuration says
// (window: Mistral, Jiang et al. 2023; biases: Qwen2; norms of queries and keys: Qwen3): token ids
// to logits, with the weights of one model file and the memory of one conversation. Not for several
// threads at once; inside, it uses a pool.
class Decoder final : public TokenModel {
 public:
  // Takes all the memory that it will ever need. `weights` are those of `file`. `pool` runs single
  // tokens, which wait for memory, and `batch_pool` several at once, which compute; they may be the
  // same. All of them must outlive the decoder.
  static Result<std::unique_ptr<Decoder>> Create(const ModelFile& file,
                                                 const xnn::PackedWeights& weights,
                                                 const DecoderOptions& options,
                                                 const ThreadPool& pool,
                                                 const ThreadPool& batch_pool);

  size_t vocab_size() const override { return config_.vocab_size; }
  size_t context_tokens() const override { return options_.context_tokens; }
  size_t chunk_tokens() const override { return options_.chunk_tokens; }
  Status Forward(std::span<const int32_t> tokens, size_t first_position) override;
  Result<std::span<float>> Logits(size_t row) override;
  Status DropPositions(size_t first, size_t count, size_t end) override;

  const DecoderMemory& memory() const { return memory_; }
  // Bytes of weights, with their scales, that one token reads: every matrix but the embedding
  // table.
  uint64_t weight_bytes_per_token() const { return weight_bytes_per_token_; }

  // From now on, what Forward and Logits do is counted in `profile`; null ends that.
  void set_profile(Profile* profile) { profile_ = profile; }
  // For measuring what the rest costs: the matrix products alone of a Forward over `rows` rows, and
  // of Logits, on whatever the buffers hold. There are no logits afterwards; the cache stays.
  Status RunLayerProducts(size_t rows);
  Status RunHeadProduct();

 private:
  // A matrix, and what multiplies by it.
  struct Projection {
    xnn::Linear* linear = nullptr;
    std::span<const std::byte> packed;
  };

  struct Layer {
    const float* input_layernorm;           // [hidden_size]
    const float* post_attention_layernorm;  // [hidden_size]
    // Null where the model has none, as all that follow.
    const float* qkv_bias = nullptr;      // [qkv_channels]
    const float* q_norm = nullptr;        // [head_dim]
    const float* k_norm = nullptr;        // [head_dim]
    const float* o_bias = nullptr;        // [hidden_size]
    const float* gate_up_bias = nullptr;  // [2 * intermediate_size]
    const float* down_bias = nullptr;     // [hidden_size]
    Projection qkv_proj;
    Projection o_proj;
    Projection gate_up_proj;
    Projection down_proj;
    ops::KvCacheView cache;
  };

  Decoder(const ModelFile& file, const DecoderOptions& options, const ThreadPool& pool,
          const ThreadPool& batch_pool, DecoderMemory memory, Arena arena);

  Status LoadVectors();
  // Where the pointer to a vector is kept.
  const float*& PlaceOf(const TensorSpec& vector);
  Status CreateProjections(const xnn::PackedWeights& weights);
  void LayOutCache();

  Status Embed(std::span<const int32_t> tokens);
  Status AttentionBlock(Layer& layer, size_t rows, size_t first_position);
  Status FeedForwardBlock(Layer& layer, size_t rows);
  const ThreadPool& PoolFor(size_t rows) const { return rows == 1 ? pool_ : batch_pool_; }
  // Calls `task(row)` for every row, each a pass over `elements` numbers.
  template <typename Task>
  void ForEachRow(size_t rows, size_t elements, const Task& task) const;
  // Rows are made ready for the product that is `next` by whoever writes them, while they are near:
  // quantized, if its weights want that.
  void MakeReady(const Projection& next, const float* input, size_t row) const;
  void NormalizeRows(const float* weight, size_t rows, const Projection& next);
  void NormalizeHeads(float* heads, size_t num_heads, const float* weight) const;
  void RotateAndStore(const Layer& layer, size_t rows, size_t first_position);
  void Attend(const Layer& layer, size_t rows, size_t first_position);
  void ActivateRows(const Layer& layer, size_t rows);
  // Adds `bias` as well, unless it is null.
  void AddProjectedRows(size_t rows, const float* bias);
  Status Multiply(const Projection& projection, size_t rows, OperatorKind kind);
  void Count(OperatorKind kind) {
    if (profile_ != nullptr) profile_->Count(kind);
  }

  const ModelFile& file_;
  const ModelConfig& config_;
  const DecoderOptions options_;
  const ThreadPool& pool_;
  const ThreadPool& batch_pool_;
  const DecoderMemory memory_;
  const Arena arena_;
  std::optional<EmbeddingReader> embedding_;

  std::vector<Layer> layers_;
  const float* norm_ = nullptr;  // [hidden_size]
  Projection lm_head_;
  std::deque<xnn::Linear> linears_;  // What projections point to.
  uint64_t weight_bytes_per_token_ = 0;
  size_t rows_ = 0;  // Of the last Forward.
  Profile* profile_ = nullptr;

  // Views of the arena; shapes as in DecoderMemory.
  float* const hidden_;
  float* const normed_;
  float* const qkv_;
  float* const attention_output_;
  float* const gate_up_;
  float* const projected_;
  const xnn::QuantizedRows quantized_;
  float* const logits_;
  float* const rope_cosines_;
  float* const rope_sines_;
};

}  // namespace cria
