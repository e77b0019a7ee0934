#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "decode/decoder_memory.h"
#include "decode/embedding.h"
#include "decode/for_each_row.h"
#include "decode/profile.h"
#include "decode/rank_link.h"
#include "decode/token_model.h"
#include "model/model_file.h"
#include "ops/attention.h"
#include "ops/kv_cache_view.h"
#include "ops/products/tiled_product.h"
#include "xnn/linear.h"
#include "xnn/packed_weights.h"

namespace cria {

// The decoder of Llama (Touvron et al. 2023) and of related models, as the configuration says
// (window: Mistral, Jiang et al. 2023; biases: Qwen2; norms of queries and keys: Qwen3; norms of
// outputs and soft caps: Gemma 2): computes logits from token ids with the weights of one model
// file, for the sequences that share its KV cache. One thread at a time may call it; it uses pools
// inside.
class Decoder final : public TokenModel {
 public:
  // Allocates all the memory that it will ever need. `weights` are those of `file`. `pool` runs up
  // to one token of each sequence, which is bound by memory, and `batch_pool` more tokens at once,
  // which is bound by computation; they may be the same pool. If decoders in several threads share
  // them, `pool_mutex` is locked while they are used. `link` leads to the ranks that compute the
  // rest of the model, if `file` has only a part of it; `pool_mutex` is also locked while it
  // exchanges messages. All of them must outlive the decoder.
  static Result<std::unique_ptr<Decoder>> Create(
      const ModelFile& file, const xnn::PackedWeights& weights, const DecoderOptions& options,
      const ThreadPool& pool, const ThreadPool& batch_pool, std::mutex* pool_mutex = nullptr,
      RankLink* link = nullptr);

  size_t vocab_size() const override { return config_.vocab_size; }
  size_t context_tokens() const override { return MaxSequenceTokens(config_, options_); }
  size_t cache_tokens() const override { return options_.context_tokens; }
  size_t chunk_tokens() const override { return options_.chunk_tokens; }
  size_t max_sequences() const override { return options_.num_sequences; }
  size_t max_logit_rows() const override { return options_.max_logit_rows; }
  Status Forward(const Batch& batch) override;
  Result<std::span<float>> Logits(size_t row) override;
  KvPages& pages() override { return pages_; }
  Status Move(std::span<const PageMove> moves) override;

  // For ranks that follow another one, whose KvPages decide: like Forward, with the pages that each
  // run has there, [runs][groups].
  Status ComputePlaced(const Batch& batch, std::span<const ops::KvPageTable> tables);
  // Computes `rows` rows of logits from row `first` on, of those of the last batch.
  Status ComputeLogits(size_t first, size_t rows);

  const DecoderMemory& memory() const { return memory_; }
  // Leads to the ranks that compute the rest of the model, and have the rest of the keys and
  // values; null: there are none.
  RankLink* link() const { return link_; }
  // On rank 0, while others call Forward: RankLink::ExchangeKvRows.
  Status ExchangeKvRows(const KvRows& rows, KvDirection direction) {
    const auto lock = LockPools();
    return link_->ExchangeKvRows(rows, cache(rows.layer), direction);
  }
  size_t num_layers() const { return layers_.size(); }
  // The keys and values of a layer. Those that a sequence holds may be replaced by keys and values
  // that were computed for the same tokens earlier (KvState).
  const ops::KvCacheView& cache(size_t layer) const { return layers_[layer].cache; }
  // The pages of the layer's rows.
  const KvPageGroup& page_group(size_t layer) const {
    return pages_.group(layers_[layer].kv_group);
  }
  // Bytes of weights and scales that one token reads: those of every matrix except the embedding
  // table.
  uint64_t weight_bytes_per_token() const { return weight_bytes_per_token_; }

  // From now on, the time of Forward and Logits is counted in `profile`; null stops counting.
  void set_profile(Profile* profile) { profile_ = profile; }
  // For benchmarks: runs only the matrix products of a Forward over `rows` rows, or the product of
  // `rows` rows of logits, with any values in the buffers. Invalidates the logits; the cache does
  // not change.
  Status RunLayerProducts(size_t rows);
  Status RunHeadProduct(size_t rows);

 private:
  // A matrix, or a piece of one, and the operator that multiplies by it.
  struct Piece {
    xnn::Linear* linear = nullptr;
    std::span<const std::byte> packed;
  };
  // A whole matrix: its pieces, which all read their input in the same form.
  struct Projection : Piece {
    std::vector<Piece> more_pieces = {};
  };

  // Where a tensor is loaded, the shape that it must have, and for a matrix the buffers of its
  // product.
  struct Place {
    const float** vector = nullptr;  // For a norm or bias, and a matrix used as it is.
    Projection* product = nullptr;   // For a matrix that products use; otherwise null.
    size_t outputs = 0;
    size_t inputs = 0;
    const float* input = nullptr;
    size_t input_stride = 0;
    xnn::QuantizedRows quantized = {};  // Null: quantized_.
    float* output = nullptr;
  };

  struct Layer {
    // These are null if the model does not have them.
    const float* input_layernorm = nullptr;           // [hidden_size]
    const float* attention_output_norm = nullptr;     // [hidden_size]
    const float* post_attention_layernorm = nullptr;  // [hidden_size]
    const float* mlp_output_norm = nullptr;           // [hidden_size]
    const float* qkv_bias = nullptr;                  // [qkv_channels]
    // [head_dim]; with joint_qk_norm [query_channels] and [key_value_channels].
    const float* q_norm = nullptr;
    const float* k_norm = nullptr;
    const float* o_bias = nullptr;        // [hidden_size]
    const float* gate_up_bias = nullptr;  // [2 * intermediate_size]
    const float* down_bias = nullptr;     // [hidden_size]
    Projection qkv_proj;
    Projection o_proj;
    Projection gate_up_proj;  // Of the shared expert in a mixture, like the next one.
    Projection down_proj;
    size_t intermediate_size = 0;  // Of these two; 0: there are none.
    // In a mixture, these have the matrices of all experts, one behind another.
    bool is_mixture = false;
    Projection experts_gate_up_proj;
    Projection experts_down_proj;
    const float* router = nullptr;              // [num_experts, hidden_size]
    const float* shared_expert_gate = nullptr;  // [hidden_size], or null if there is none.
    ops::KvCacheView cache;
    size_t kv_group = 0;  // Of pages_.
    ops::AttentionShape attention;
    // [context][rotary_channels / 2], shared with other layers; null without rope.
    const float* rope_cosines = nullptr;
    const float* rope_sines = nullptr;  // The same shape.
  };

  // output[i] = act(gate[i]) * up[i]; `output` may be `gate`.
  using GatedAct = void (*)(const float* gate, const float* up, size_t size, float* output);

  Decoder(const ModelFile& file, const DecoderOptions& options, const ThreadPool& pool,
          const ThreadPool& batch_pool, std::mutex* pool_mutex, DecoderMemory memory, Arena arena);

  // The buffers of a mixture; the shapes are in DecoderMemory.
  struct Experts {
    float* scores;
    uint32_t* choices;
    float* weights;
    uint32_t* slots;
    uint32_t* slot_rows;
    ExpertGroup* groups;
    ops::RowGroup* row_groups;
    xnn::QuantizedRows quantized;
    float* gate_up;
    float* output;
  };

  static Experts ExpertsIn(const Arena& arena, const DecoderMemory& memory);
  static GatedAct GatedActOf(HiddenAct act);
  Status LoadVectors();
  Place PlaceOf(const TensorSpec& spec);
  // Fails if the tensor, whose pieces these are, does not have the shape that the decoder computes
  // with.
  Result<Place> CheckedPlaceOf(std::span<const StoredTensor> pieces, const TensorSpec& spec);
  Status CreateProjections(const xnn::PackedWeights& weights);
  // Most layers have the same shapes, so the operators of one layer serve others.
  struct KnownLinear {
    TensorRole role;
    size_t first_row;
    TensorLayout layout;
    xnn::Linear* linear;
  };
  using KnownLinears = std::vector<KnownLinear>;
  Result<xnn::Linear*> LinearFor(const TensorSpec& spec, const StoredTensor& piece,
                                 const Place& place, KnownLinears& known);
  void LayOutCache();
  // Fills the rope tables and sets what depends on the kind of each layer.
  void PrepareLayerKinds();
  // After LoadVectors and PrepareLayerKinds.
  void SubtractKeyOffsets();

  std::unique_lock<std::mutex> LockPools() const {
    return pool_mutex_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*pool_mutex_);
  }
  Status CheckBatch(const Batch& batch) const;
  // Makes each sequence end after its run, so that there are rows for its tokens, and writes down
  // where the rows of the batch stand. Fails if a sequence has fewer tokens than the run's first
  // position.
  Status PlaceRuns(const Batch& batch);
  // Writes down where the rows of the next run stand in the layers of a group. `first_row` is its
  // first row.
  void PlaceRun(const BatchRun& run, size_t first_row, size_t group, const ops::KvPageTable& table);
  // The same for rows of logits.
  void PlaceLogits(const BatchRun& run, size_t first_row);
  // Fills the first rows of the hidden state.
  Status Embed(std::span<const int32_t> tokens);
  // Runs a batch whose rows are placed and embedded.
  Status RunPlaced(size_t rows);
  Status MoveRows(std::span<const PageMove> moves);
  // Adds the other ranks' parts to the projected rows.
  Status SumOverRanks(size_t rows) {
    return link_ == nullptr ? Status() : link_->Sum({projected_, rows * config_.hidden_size});
  }
  // Begins with normalized rows, and ends with those of FeedForwardBlock.
  Status AttentionBlock(Layer& layer, size_t rows);
  // Ends with the normalized rows of the layer `next`; it is null after the last layer.
  Status FeedForwardBlock(Layer& layer, size_t rows, const Layer* next);
  // All leave the block's output in projected_. The shared expert of a mixture is a dense
  // feed-forward whose rows may have to be quantized in another form than the experts'.
  Status DenseFeedForward(const Layer& layer, size_t rows);
  Status Mixture(const Layer& layer, size_t rows);
  Status SharedExpert(const Layer& layer, size_t rows);
  // Lets each row choose its experts.
  void Route(const Layer& layer, size_t rows);
  // Gives each choice of the rows a slot, those of one expert behind one another.
  void GroupChoices(size_t rows);
  // Copies the normalized rows into their slots, and begins to read the chosen experts.
  void FillSlots(const Layer& layer, size_t rows);
  Status MultiplyExperts(const Projection& experts, size_t rows, OperatorKind kind);
  void ActivateSlots(const Layer& layer, size_t rows);
  void AddExperts(const Layer& layer, size_t rows);
  const float* FeedForwardRows() const { return config_.has_norms_before() ? normed_ : hidden_; }
  const Projection& FeedForwardInput(const Layer& layer) const {
    return layer.is_mixture ? layer.experts_gate_up_proj : layer.gate_up_proj;
  }
  std::span<const std::byte> PartOf(const Projection& experts, size_t expert) const {
    const size_t bytes = experts.packed.size() / config_.num_experts;
    return experts.packed.subspan(expert * bytes, bytes);
  }
  const ThreadPool& PoolFor(size_t rows) const {
    return rows <= options_.num_sequences ? pool_ : batch_pool_;
  }
  float* HiddenRow(size_t row) const { return hidden_ + row * config_.hidden_size; }
  // Calls `task(row)` for every row; each call processes `elements` numbers.
  template <typename Task>
  void ForEachRow(size_t rows, size_t elements, const Task& task) const {
    cria::ForEachRow(PoolFor(rows), rows, elements, task);
  }
  // Prepares a row as input of the product `next`: quantizes it if the weights need that. Called by
  // the function that writes the row, while the row is in a cache.
  void MakeReady(const Projection& next, const float* input, size_t row) const;
  // Normalizes `input`, a row of the hidden state, as row `row` of the input of `next`. If `weight`
  // is null, there is no norm, and `next` reads the hidden state.
  void Normalize(const float* input, size_t row, const float* weight, const Projection& next) const;
  // A row of a rotated hidden state as it would be without the rotation, in row `row` of the
  // buffer where Normalize writes, which may read it from there.
  const float* TurnBack(const float* hidden, size_t row) const;
  void NormalizeHeads(float* heads, size_t channels, const float* weight) const;
  // Whether queries and keys are normalized before RotateAndStore, because other ranks have a part.
  bool IsNormalizedOverRanks() const { return link_ != nullptr && config_.joint_qk_norm; }
  void RotateAndStore(const Layer& layer, size_t rows);
  void Attend(const Layer& layer, size_t rows);
  void ActivateRows(const Layer& layer, size_t rows);
  // Adds the projected row, with `bias` and then normalized unless these are null, to that row of
  // the hidden state, and returns it.
  const float* AddProjected(size_t row, const float* bias, const float* norm) const;
  // Caps rows of logits, if the model does that.
  void CapLogits(size_t rows);
  Status Multiply(const Projection& projection, size_t rows, OperatorKind kind);
  void Count(OperatorKind kind) {
    if (profile_ != nullptr) profile_->Count(kind);
  }

  const ModelFile& file_;
  const ModelConfig& config_;
  const DecoderOptions options_;
  const ThreadPool& pool_;
  const ThreadPool& batch_pool_;
  std::mutex* const pool_mutex_;
  RankLink* link_ = nullptr;
  const GatedAct gated_act_;
  const DecoderMemory memory_;
  const Arena arena_;
  std::optional<EmbeddingReader> embedding_;
  KvPages pages_;

  std::vector<Layer> layers_;
  const float* norm_ = nullptr;  // [hidden_size]
  Projection lm_head_;
  std::deque<xnn::Linear> linears_;  // Projections point into it.
  uint64_t weight_bytes_per_token_ = 0;
  Profile* profile_ = nullptr;

  size_t num_runs_ = 0;           // Of the batch that is run.
  size_t num_placed_logits_ = 0;  // Rows of logits of this batch.
  size_t num_logits_ = 0;         // The same after the Forward; 0 if it failed.
  // Rows [logits_begin_, logits_end_) of the logits are computed, one behind another in `logits_`.
  size_t logits_begin_ = 0;
  size_t logits_end_ = 0;

  // Views of the arena; the shapes are in DecoderMemory.
  float* const hidden_;
  float* const normed_;
  float* const qkv_;
  float* const attention_output_;
  float* const gate_up_;
  float* const projected_;
  const xnn::QuantizedRows quantized_;
  BatchRow* const rows_;
  uint32_t* const logit_rows_;
  ops::AttentionRows* const runs_;
  float* const logits_;
  const Experts experts_;
  size_t num_groups_ = 0;  // Experts that rows chose.
};

}  // namespace cria
