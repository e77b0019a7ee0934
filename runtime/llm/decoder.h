#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/arena.h"
#include "core/thread_pool.h"
#include "llm/decoder_memory.h"
#include "llm/embedding.h"
#include "llm/token_model.h"
#include "model/model_file.h"
#include "ops/kv_cache_view.h"
#include "xnn/linear.h"
#include "xnn/packed_weights.h"
#include "xnn/row_quantizer.h"

namespace cria {

// The Llama decoder (Touvron et al. 2023): token ids to logits, with the weights of one model file
// and the memory of one conversation. Not for several threads at once; inside, it uses a pool.
class Decoder final : public TokenModel {
 public:
  // Takes all the memory that it will ever need. `weights` are those of `file`; they, `file` and
  // `pool` must outlive the decoder.
  static Result<std::unique_ptr<Decoder>> Create(const ModelFile& file,
                                                 const xnn::PackedWeights& weights,
                                                 const DecoderOptions& options,
                                                 const ThreadPool& pool);

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

 private:
  struct Layer {
    const float* input_layernorm;           // [hidden_size]
    const float* post_attention_layernorm;  // [hidden_size]
    std::optional<xnn::Linear> qkv_proj;
    std::optional<xnn::Linear> o_proj;
    std::optional<xnn::Linear> gate_up_proj;
    std::optional<xnn::Linear> down_proj;
    ops::KvCacheView cache;
  };

  Decoder(const ModelFile& file, const DecoderOptions& options, const ThreadPool& pool,
          DecoderMemory memory, Arena arena);

  Status LoadNorms();
  Status CreateMatrices(const xnn::PackedWeights& weights);
  Status CreateQuantizers();
  void LayOutCache();

  Status Embed(std::span<const int32_t> tokens);
  Status AttentionBlock(Layer& layer, size_t rows, size_t first_position);
  Status FeedForwardBlock(Layer& layer, size_t rows);
  // Calls `task(row)` for every row, each a pass over `elements` numbers.
  template <typename Task>
  void ForEachRow(size_t rows, size_t elements, const Task& task) const;
  void NormalizeRows(const float* weight, size_t rows);
  void RotateAndStore(const Layer& layer, size_t rows, size_t first_position);
  void AddProjectedRows(size_t rows);
  // Multiplies by `linear`, quantizing its input first if its scheme wants that.
  Status Project(xnn::RowQuantizer& quantizer, xnn::Linear& linear, size_t rows);

  const ModelFile& file_;
  const ModelConfig& config_;
  const DecoderOptions options_;
  const ThreadPool& pool_;
  const DecoderMemory memory_;
  const Arena arena_;
  const EmbeddingReader embedding_;

  std::vector<Layer> layers_;
  const float* norm_ = nullptr;  // [hidden_size]
  std::optional<xnn::Linear> lm_head_;
  std::optional<xnn::RowQuantizer> normed_quantizer_;
  std::optional<xnn::RowQuantizer> attention_quantizer_;
  std::optional<xnn::RowQuantizer> swiglu_quantizer_;
  uint64_t weight_bytes_per_token_ = 0;
  size_t rows_ = 0;  // Of the last Forward.

  // Views of the arena; shapes as in DecoderMemory.
  float* const hidden_;
  float* const normed_;
  float* const qkv_;
  float* const attention_output_;
  float* const gate_up_;
  float* const projected_;
  float* const logits_;
  float* const rope_cosines_;
  float* const rope_sines_;
};

}  // namespace cria
