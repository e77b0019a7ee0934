#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "decode/batch_placement.h"
#include "decode/decoder_layer.h"
#include "decode/decoder_memory.h"
#include "decode/embedding.h"
#include "decode/hidden_state.h"
#include "decode/kv_cache.h"
#include "decode/mtp_layer.h"
#include "decode/output_head.h"
#include "decode/per_layer_inputs.h"
#include "decode/profile.h"
#include "decode/rank_link.h"
#include "decode/rope_tables.h"
#include "decode/sequences.h"
#include "decode/state_cache.h"
#include "decode/token_model.h"
#include "decode/workers.h"
#include "model/model_file.h"
#include "xnn/linear.h"
#include "xnn/packed_weights.h"

namespace cria {

// The decoder of Llama (Touvron et al. 2023) and of related models, as the configuration says
// (window: Mistral, Jiang et al. 2023; biases: Qwen2; norms of queries and keys: Qwen3; norms of
// outputs and soft caps: Gemma 2): computes logits from token ids with the weights of one model
// file, for the sequences that share its KV cache. One thread at a time may call it; it uses pools
// inside. Its members are the parts of the model, each a class of its own, and most of its
// functions are those of TokenModel: so it has more of both than other classes.
class Decoder final : public TokenModel {
 public:
  // Allocates all the memory that it will ever need. `weights` are those of `file`. `pool`,
  // `batch_pool` and `pool_mutex` are those of Workers: `pool` runs up to one token of each
  // sequence. `ranks` leads to the ranks that compute the rest of the model, if `file` has only a
  // part of it; `pool_mutex` is also locked while these exchange messages. All of them must outlive
  // the decoder.
  static Result<std::unique_ptr<Decoder>> Create(
      const ModelFile& file, const xnn::PackedWeights& weights, const DecoderOptions& options,
      const ThreadPool& pool, const ThreadPool& batch_pool, std::mutex* pool_mutex = nullptr,
      RankLink& ranks = NoOtherRanks());

  size_t vocab_size() const override { return shape_.config.vocab_size; }
  size_t hidden_size() const override { return shape_.config.hidden_size; }
  size_t context_tokens() const override { return shape_.sequence_tokens(); }
  size_t cache_tokens() const override { return shape_.options.context_tokens; }
  size_t chunk_tokens() const override { return shape_.options.chunk_tokens; }
  size_t max_sequences() const override { return shape_.options.num_sequences; }
  size_t max_logit_rows() const override { return shape_.options.max_logit_rows; }
  Status Forward(const Batch& batch) override;
  Result<std::span<float>> Logits(size_t row) override;
  Result<std::span<const float>> LastHiddenState(size_t row) override { return head_.Hidden(row); }
  bool can_guess() const override { return mtp_ != nullptr; }
  Status Guess(const GuessRequest& request, const GuessCallback& choose) override;
  Sequences& sequences() override { return sequences_; }
  const Sequences& sequences() const { return sequences_; }
  Status CarryOutMoves() override;

  // For ranks that follow another one, whose Sequences decide: like Forward, with the shift that
  // each run's sequence has there, [runs], its pages, [runs][groups], and what it does in recurrent
  // layers, [runs] or nothing.
  Status ComputePlaced(const Batch& batch, std::span<const SequenceShift> shifts,
                       std::span<const ops::KvPageTable> tables, std::span<const StateRun> states);
  // For the same ranks: moves rows and copies states as rank 0 does.
  void CarryOut(const StoreMoves& moves) const;
  // Computes `rows` rows of logits from row `first` on, of those of the last batch.
  Status ComputeLogits(size_t first, size_t rows) { return head_.Compute(first, rows); }
  // On rank 0, while others call Forward: RankCache::ExchangeKvRows.
  Status ExchangeKvRows(const KvRows& rows, KvDirection direction);
  // Calls RankCache::ExchangeState; `scratch` is used as by StateAfter.
  Status ExchangeState(const KeptState& state, std::span<float> scratch, KvDirection direction);
  // This rank's part of a state, which is in its place or else in `scratch`.
  std::span<float> StateAfter(const KeptState& state, std::span<float> scratch) const {
    if (shape_.is_mtp_hidden(state.layer)) return mtp_->StateAfter(state.place, state.num_rows);
    return layers_[state.layer].mixer->StateAfter(state.place, state.num_rows, scratch);
  }

  const DecoderMemory& memory() const { return memory_; }
  // Leads to the ranks that compute the rest of the model, and have the rest of the keys and
  // values.
  RankLink& ranks() const { return ranks_; }
  // The keys and values of a layer. Those that a sequence holds may be replaced by keys and values
  // that were computed for the same tokens earlier (KvState).
  const KvCache& cache() const { return cache_; }
  // The states of recurrent layers.
  const StateCache& states() const { return states_; }
  // Bytes of weights and scales that one token reads: those of every matrix except the embedding
  // table.
  uint64_t weight_bytes_per_token() const { return weight_bytes_per_token_; }

  // From now on, the time of Forward and Logits is counted in `profile`; null stops counting.
  void set_profile(Profile* profile) { workers_.set_profile(profile); }
  // For benchmarks, which run parts of it.
  std::span<const DecoderLayer> layers() const { return layers_; }
  OutputHead& head() { return head_; }

 private:
  Decoder(const DecoderShape& shape, const Workers& workers, RankLink& ranks, DecoderMemory memory,
          Arena arena, EmbeddingReader embedding);

  // Makes the halves of a layer, which work with `context`. Returns its attention, if it has any.
  const SelfAttention* MakeBlocks(size_t index, const LayerContext& context, DecoderLayer& layer);
  // Makes the layers, and loads their weights and those of the head.
  Status Load(const ModelFile& file, const xnn::PackedWeights& weights);
  Status Check(const Batch& batch) const;
  // Makes each sequence end after its run, so that there are rows for its tokens, and writes down
  // where the rows of the batch stand. Fails if a sequence has fewer tokens than the run's first
  // position.
  Status PlaceRuns(const Batch& batch);
  // Writes the embedding of a row's token, or what the batch has in its place.
  Status ReadEmbedding(const Batch& batch, size_t row, float* output) const;
  // Fills the first rows of the hidden state and, if there are any, of the per-layer inputs.
  Status Embed(const Batch& batch);
  // Adds the output of the layer's feed-forward, and what comes after that; `next` is null after
  // the last layer.
  Status EndLayer(const DecoderLayer& layer, const DecoderLayer* next, size_t rows) const;
  // Runs a batch whose rows are placed and embedded.
  Status RunLayers(const Batch& batch);
  // Adds the rows of the batch to what mtp_ keeps, and lets those without logits end.
  Status StoreForGuesses(const Batch& batch);
  // Guess, when the sequence has rows for the tokens.
  Status RunGuesses(const GuessRequest& request, const GuessCallback& choose);
  // Lets the rows without logits end, in `mixer` and in what is around the layers. Returns how many
  // rows are left.
  size_t KeepLogitRows(TokenMixer& mixer);
  // CarryOutMoves while the workers are locked.
  Status CarryOutLocked();
  void CarryOutLocked(const StoreMoves& moves) const;

  const DecoderShape shape_;
  Workers workers_;
  RankLink& ranks_;
  const DecoderMemory memory_;
  const Arena arena_;
  const EmbeddingReader embedding_;
  const RopeTables ropes_;
  Sequences sequences_;
  KvCache cache_;
  const StateCache states_;
  BatchPlacement placement_;
  const HiddenState hidden_;
  OutputHead head_;
  std::unique_ptr<PerLayerInputs> per_layer_inputs_;  // Null if the model has none.
  std::unique_ptr<MtpLayer> mtp_;                     // Null without has_mtp.
  std::vector<DecoderLayer> layers_;
  std::deque<xnn::Linear> linears_;  // The projections of layers and head point into it.
  uint64_t weight_bytes_per_token_ = 0;
};

}  // namespace cria
