#pragma once

#include <cstddef>
#include <span>

#include "core/arena.h"
#include "cria/error.h"
#include "decode/batch_placement.h"
#include "decode/decoder_layer.h"
#include "decode/hidden_state.h"
#include "decode/kept_rows.h"
#include "decode/projection.h"
#include "decode/state_cache.h"
#include "decode/tensor_places.h"
#include "decode/workers.h"
#include "model/config.h"

namespace cria {

// The layer behind those of the model that guesses the token after the next one (multi-token
// prediction, DeepSeek-AI 2024, as Qwen3-Next and Qwen3.5 have it). With x the tokens, h the hidden
// state behind the model's last norm, e the embedding and [a; b] two vectors joined,
//   u_t = fc [norm_e(e(x_t)); norm_h(h_(t-1))]
//   v_t = norm(layer(u_1, …, u_t)_t)
// and the logits of the token at t + 1 are those of the model's head for v_t. So it needs only the
// token at t, which has just been chosen, and not what the model makes of it. For the token after
// that, v_t takes the place of h_t.
//
// The row of a token depends on this token and earlier ones alone, as those of other layers do, so
// that its keys and values stand on the same pages. The first token has no row: none attends to it.
class MtpLayer {
 public:
  struct Regions {
    ArenaLayout::RegionId joined;  // f32 [chunk][2 * hidden_size]
    ArenaLayout::RegionId hidden;  // f32 [chunk][hidden_size]: u.
    ArenaLayout::RegionId logits;  // f32 [vocab_size]
  };
  // All are empty without has_mtp.
  static Regions Plan(const DecoderShape& shape, ArenaLayout& layout);
  // What it keeps of a sequence besides keys and values: h of the last token.
  static StateSize SizeOf(const ModelConfig& config);

  // `model` is the hidden state of the model's layers, whose regions `model_regions` are; the two
  // share all but the rows themselves. All must outlive the object.
  MtpLayer(const DecoderShape& shape, const Regions& regions,
           const HiddenState::Regions& model_regions, const ArenaView& arena,
           const Workers& workers, RankMath& ranks, const HiddenState& model,
           const StateCache::Layer& states);

  // What the layer's blocks work with.
  const HiddenState& hidden() const { return hidden_; }
  DecoderLayer& layer() { return layer_; }
  // The head, which belongs to no layer.
  void AddHeadPlace(TensorPlaces& places, size_t output_channels);
  // The rest, after the layer's blocks were made.
  void AddPlaces(TensorPlaces& places);

  // Where the embedding of a row's token must be before Store and Guess, [hidden_size].
  float* Embedding(size_t row) const { return joined_ + row * 2 * size_; }
  // Adds all rows of a batch, when the model's layers have computed them, to what is kept of their
  // sequences. `last_norm` is the model's.
  Status Store(const BatchPlacement& placement, const float* last_norm, size_t rows);
  // h of the last token before the run.
  const float* LastHidden(const StateRun& run) const { return Kept(run).EarlierThan(run); }
  // Computes the only row that is placed, from h, or v, of the token before it. Returns its logits,
  // [vocab_size], which are valid until the next call.
  Result<std::span<float>> Guess(const BatchPlacement& placement, const float* previous);
  // v of the last Guess, [hidden_size]: valid until another row is computed.
  const float* LastOutput() const { return hidden_.normed(); }
  // TokenMixer::StateAfter of what it keeps besides keys and values.
  std::span<float> StateAfter(size_t place, size_t num_rows) const;

 private:
  KeptRows Kept(const StateRun& run) const {
    return {.rows = states_.State(run.place), .channels = size_, .num_earlier = 1};
  }
  // Makes a row ready for the product, from its embedding and the row before it.
  void Join(size_t row, const float* previous) const;
  // Computes u of the joined rows, and makes them ready for the layer.
  Status BeginLayer(size_t rows);

  const ModelConfig& config_;
  const size_t size_;
  const Workers& workers_;
  const HiddenState& model_;
  const StateCache::Layer& states_;
  float* const joined_;
  float* const logits_;
  const HiddenState hidden_;
  DecoderLayer layer_;
  Projection fc_;
  Projection lm_head_;
  const float* embedding_norm_ = nullptr;  // [hidden_size], as the next ones.
  const float* hidden_norm_ = nullptr;
  const float* norm_ = nullptr;
};

}  // namespace cria
