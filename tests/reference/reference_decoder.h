#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/reference_layer.h"
#include "reference/reference_model.h"
#include "reference/reference_per_layer.h"

namespace cria::reference {

// The decoder of a LlamaForCausalLM or one of its relatives, evaluated in float64 by plain loops,
// one token at a time. It is meant to be checked by reading it beside the papers, so it has no fast
// path and rounds nothing.
//
// Every function of this header throws std::runtime_error for a missing tensor, a wrong shape or an
// id outside the vocabulary.
class ReferenceDecoder {
 public:
  // Keeps a reference to `model`, which must outlive the decoder. `context` as in
  // reference_rope.h.
  explicit ReferenceDecoder(const ReferenceModel& model, size_t context = 0);

  // Appends a token to the sequence and returns the logits of what follows it, [vocab_size], valid
  // until the next call.
  const std::vector<double>& Step(int id);

  // The hidden state, [hidden_size], that the logits of the last Step are computed from.
  const std::vector<double>& hidden() const { return hidden_; }

  // What the layer for multi-token prediction (MTP) makes of `ids`, which come behind the tokens so
  // far, at least one: the logits behind the last of them. Needs such a layer.
  std::vector<double> Guess(std::span<const int> ids);

  // Starts a new sequence.
  void Reset();

  // How many tokens the sequence has.
  size_t position() const { return position_; }

 private:
  // The hidden state from which the MTP layer guesses, of a token and what the model, or the layer
  // itself, has of the tokens before it.
  std::vector<double> GuessOf(int id, const std::vector<double>& hidden);
  std::vector<double> Norm(const std::vector<double>& x, const float* weight) const;
  void NormalizeHeads(std::vector<double>& heads, size_t head_dim, const float* weight) const;
  void AddBlock(std::vector<double>& x, const std::vector<double>& output, const float* norm) const;
  std::vector<double> MixerOf(ReferenceLayer& layer, const std::vector<double>& x);
  std::vector<double> AttentionOf(ReferenceLayer& layer, const std::vector<double>& normed);
  std::vector<double> TakeOutputGates(std::vector<double>& queries) const;
  std::vector<double> FeedForwardOf(const ReferenceLayer& layer,
                                    const std::vector<double>& x) const;
  std::vector<double> DenseOf(const ReferenceLayer& layer, const std::vector<double>& normed) const;
  std::vector<double> Attend(const ReferenceLayer& layer, const std::vector<double>& queries) const;

  const ReferenceModel& model_;
  const float* embed_tokens_;  // [vocab_size, hidden_size]
  const float* norm_;          // [hidden_size]
  const float* lm_head_;       // [vocab_size, hidden_size]; embed_tokens_ where they are tied.
  std::vector<ReferenceLayer> layers_;
  std::optional<ReferencePerLayer> per_layer_;
  // The layer for multi-token prediction.
  struct Mtp {
    const float* fc;              // [hidden_size, 2 * hidden_size]
    const float* embedding_norm;  // [hidden_size], as the next two.
    const float* hidden_norm;
    const float* norm;
    ReferenceLayer layer;
  };
  std::optional<Mtp> mtp_;
  std::vector<int> ids_;                         // The tokens so far, and
  std::vector<std::vector<double>> all_hidden_;  // hidden() of each.
  size_t position_ = 0;
  std::vector<double> hidden_;  // [hidden_size]
  std::vector<double> logits_;  // [vocab_size]
};

// The logits after each of `ids`: [ids][vocab_size].
std::vector<double> Logits(const ReferenceModel& model, std::span<const int> ids,
                           size_t context = 0);

// The lowest id among those with the largest logit.
int ArgMax(std::span<const double> logits);

// `count` ids that follow `prompt` (not empty), each the likeliest; end tokens do not stop it.
std::vector<int> Greedy(const ReferenceModel& model, std::span<const int> prompt, size_t count);

// Minus the natural logarithm of the softmax probability of `id`.
double NegativeLogLikelihood(std::span<const double> logits, int id);

// The mean negative log-likelihood in nats of all `ids`, which have no beginning-of-sequence token:
// they are cut into windows of `context` - 1, `bos_token_id` goes before each window, and every id
// of a window is predicted from what precedes it there.
double MeanNegativeLogLikelihood(const ReferenceModel& model, std::span<const int> ids,
                                 size_t context, int bos_token_id);

}  // namespace cria::reference
