#include "reference/reference_decoder.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <stdexcept>

#include "reference/reference_math.h"
#include "reference/reference_rope.h"

namespace cria::reference {
namespace {

// Gemma 2: cap * tanh(x / cap), unless there is no cap.
double SoftCap(double x, double cap) { return cap == 0.0 ? x : cap * std::tanh(x / cap); }

void Append(std::vector<double>& list, const std::vector<double>& tail) {
  list.insert(list.end(), tail.begin(), tail.end());
}

}  // namespace

ReferenceDecoder::ReferenceDecoder(const ReferenceModel& model, size_t context) : model_(model) {
  const ReferenceConfig& c = model.config;
  if (c.head_dim % 2 != 0) throw std::runtime_error("head_dim must be even");
  if (c.num_key_value_heads == 0 || c.num_attention_heads % c.num_key_value_heads != 0) {
    throw std::runtime_error("num_key_value_heads must divide num_attention_heads");
  }
  embed_tokens_ = Weights(model, c.prefix + "embed_tokens.weight", {c.vocab_size, c.hidden_size});
  norm_ = Weights(
      model,
      c.prefix + (c.names == ReferenceNames::kLlama ? "norm.weight" : "embedding_norm.weight"),
      {c.hidden_size});
  lm_head_ = c.tie_word_embeddings
                 ? embed_tokens_
                 : Weights(model, "lm_head.weight", {c.vocab_size, c.hidden_size});
  for (size_t l = 0; l < c.num_hidden_layers; ++l) {
    layers_.push_back(MakeLayer(model, std::format("{}layers.{}.", c.prefix, l), l, context));
  }
  if (model.tensors.contains("mtp.norm.weight")) {
    // It attends to all tokens, as one of the model's own layers does.
    size_t like = 0;
    while (c.AttentionOf(like).linear_attention) ++like;
    mtp_.emplace(
        Mtp{.fc = Weights(model, "mtp.fc.weight", {c.hidden_size, 2 * c.hidden_size}),
            .embedding_norm = Weights(model, "mtp.pre_fc_norm_embedding.weight", {c.hidden_size}),
            .hidden_norm = Weights(model, "mtp.pre_fc_norm_hidden.weight", {c.hidden_size}),
            .norm = Weights(model, "mtp.norm.weight", {c.hidden_size}),
            .layer = MakeLayer(model, "mtp.layers.0.", like, context)});
  }
  if (c.per_layer_size == 0) return;
  per_layer_.emplace(
      c, [&](const std::string& name, const auto& shape) { return Weights(model, name, shape); });
}

// Zhang and Sennrich 2019: x / sqrt(mean(x^2) + eps) * weight; null is no norm. Gemma's weights are
// stored without the 1 that is added to them.
std::vector<double> ReferenceDecoder::Norm(const std::vector<double>& x,
                                           const float* weight) const {
  if (weight == nullptr) return x;
  double mean_square = 0.0;
  for (double value : x) mean_square += value * value;
  mean_square /= static_cast<double>(x.size());
  const double root = std::sqrt(mean_square + model_.config.rms_norm_eps);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / root * (model_.config.norm_weight_offset + weight[i]);
  }
  return y;
}

// Qwen3: each head is normalized by itself, all with one weight. OLMo 2: all together.
void ReferenceDecoder::NormalizeHeads(std::vector<double>& heads, size_t head_dim,
                                      const float* weight) const {
  const size_t size = model_.config.joint_qk_norm ? heads.size() : head_dim;
  for (size_t start = 0; start < heads.size(); start += size) {
    const auto head = heads.begin() + static_cast<std::ptrdiff_t>(start);
    const std::vector<double> normed =
        Norm({head, head + static_cast<std::ptrdiff_t>(size)}, weight);
    std::copy(normed.begin(), normed.end(), head);
  }
}

// Vaswani et al. 2017: softmax(q k / sqrt(head_dim)) v over this position and all before it;
// Ainslie et al. 2023: consecutive query heads share a key-value head. Jiang et al. 2023 (Mistral
// 7B): with a window W, position i attends to those from i - W + 1 on. Gemma 2 caps scores.
std::vector<double> ReferenceDecoder::Attend(const ReferenceLayer& layer,
                                             const std::vector<double>& queries) const {
  const ReferenceConfig& c = model_.config;
  const size_t head_dim = layer.attention.head_dim;
  const size_t key_value_channels = layer.attention.num_key_value_heads * head_dim;
  const size_t group_size = c.num_attention_heads / layer.attention.num_key_value_heads;
  // Gemma 4's last layers attend to what earlier ones have stored.
  const int read_layer = layer.attention.read_layer;
  const ReferenceLayer& stored = read_layer < 0 ? layer : layers_[static_cast<size_t>(read_layer)];
  std::vector<double> output(queries.size(), 0.0);
  for (size_t h = 0; h < c.num_attention_heads; ++h) {
    const double* query = queries.data() + h * head_dim;
    const size_t offset = h / group_size * head_dim;
    std::vector<double> scores(position_ + 1);
    for (size_t t = 0; t <= position_; ++t) {
      const double* key = stored.keys.data() + t * key_value_channels + offset;
      double dot = 0.0;
      for (size_t i = 0; i < head_dim; ++i) dot += query[i] * key[i];
      const double scale =
          c.score_scale == 0.0 ? 1.0 / std::sqrt(static_cast<double>(head_dim)) : c.score_scale;
      scores[t] = SoftCap(dot * scale, c.attn_logit_softcapping);
      const size_t window = layer.attention.sliding_window;
      const bool has_left_window = window != 0 && t + window <= position_;
      if (has_left_window) scores[t] = -std::numeric_limits<double>::infinity();
    }
    if (layer.sinks != nullptr) scores.push_back(layer.sinks[h]);
    Softmax(scores);
    for (size_t t = 0; t <= position_; ++t) {
      const double* value = stored.values.data() + t * key_value_channels + offset;
      for (size_t i = 0; i < head_dim; ++i) output[h * head_dim + i] += scores[t] * value[i];
    }
  }
  return output;
}

// What attention, or the convolution in its place, adds to x, before any norm of it.
std::vector<double> ReferenceDecoder::MixerOf(ReferenceLayer& layer, const std::vector<double>& x) {
  const std::vector<double> normed = Norm(x, layer.attention_input_norm);
  if (layer.delta_net) return layer.delta_net->Of(normed);
  if (layer.mamba) return layer.mamba->Of(normed);
  return layer.short_conv ? layer.short_conv->Of(normed) : AttentionOf(layer, normed);
}

std::vector<double> ReferenceDecoder::AttentionOf(ReferenceLayer& layer,
                                                  const std::vector<double>& normed) {
  const ReferenceConfig& c = model_.config;
  const size_t head_dim = layer.attention.head_dim;
  const size_t query_channels = c.num_attention_heads * head_dim;
  const bool has_keys = layer.attention.read_layer < 0;
  const size_t key_value_channels = has_keys ? layer.attention.num_key_value_heads * head_dim : 0;
  std::vector<double> queries = MatrixTimesVector(
      layer.q_proj, (c.attn_output_gate ? 2 : 1) * query_channels, normed, layer.q_bias);
  const std::vector<double> output_gates = TakeOutputGates(queries);
  std::vector<double> keys =
      MatrixTimesVector(layer.k_proj, key_value_channels, normed, layer.k_bias);
  const auto normalize = [&] {
    NormalizeHeads(queries, head_dim, layer.q_norm);
    NormalizeHeads(keys, head_dim, layer.k_norm);
  };
  if (!c.norms_after_rope) normalize();
  const auto rotate = [&](std::vector<double>& heads_to_rotate) {
    RotateHeads(c, layer.attention, layer.rope_frequencies, position_, heads_to_rotate);
  };
  rotate(queries);
  rotate(keys);
  if (c.norms_after_rope) normalize();  // Hunyuan.
  if (c.query_scale_positions != 0) {   // Ministral 3, by the scaling of Llama 4.
    const double times =
        std::floor(static_cast<double>(position_) / static_cast<double>(c.query_scale_positions));
    for (double& query : queries) query *= 1.0 + c.query_scale_beta * std::log(1.0 + times);
  }
  Append(layer.keys, keys);
  std::vector<double> values =
      MatrixTimesVector(layer.v_proj, key_value_channels, normed, layer.v_bias);
  if (c.normalizes_values) {
    const std::vector<float> ones(head_dim, 1.0f);
    NormalizeHeads(values, head_dim, ones.data());
  }
  Append(layer.values, values);
  std::vector<double> heads = Attend(layer, queries);
  // LFM3: a sigmoid for each head, of a product with what attention reads.
  if (layer.gate != nullptr) {
    const std::vector<double> gates = MatrixTimesVector(layer.gate, c.num_attention_heads, normed);
    for (size_t i = 0; i < heads.size(); ++i) heads[i] /= 1.0 + std::exp(-gates[i / head_dim]);
  }
  for (size_t i = 0; i < output_gates.size(); ++i) heads[i] /= 1.0 + std::exp(-output_gates[i]);
  return MatrixTimesVector(layer.o_proj, c.hidden_size, heads, layer.o_bias);
}

// Qwen3.5: each head of q_proj has its query and then its gates, one for each channel.
std::vector<double> ReferenceDecoder::TakeOutputGates(std::vector<double>& queries) const {
  if (!model_.config.attn_output_gate) return {};
  const size_t head_dim = model_.config.head_dim;
  std::vector<double> only_queries, gates;
  for (size_t i = 0; i < queries.size(); ++i) {
    (i / head_dim % 2 == 0 ? only_queries : gates).push_back(queries[i]);
  }
  queries = only_queries;
  return gates;
}

// Shazeer 2020: down(act(gate) * up), or a mixture; what is added to x, before any norm of it.
std::vector<double> ReferenceDecoder::FeedForwardOf(const ReferenceLayer& layer,
                                                    const std::vector<double>& x) const {
  const ReferenceConfig& c = model_.config;
  const std::vector<double> normed = Norm(x, layer.mlp_input_norm);
  if (layer.gpt_oss) return layer.gpt_oss->Of(normed);
  if (!layer.mixture) return DenseOf(layer, normed);
  if (!c.experts.are_beside_mlp) return layer.mixture->Of(normed);
  // Gemma 4: the router reads x with a norm of its own.
  std::vector<double> sum = Norm(DenseOf(layer, normed), layer.dense_output_norm);
  const std::vector<float> ones(x.size(), 1.0f);
  const std::vector<double> experts =
      Norm(layer.mixture->Of(Norm(x, layer.experts_norm), Norm(x, ones.data())),
           layer.experts_output_norm);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += experts[i];
  return sum;
}

std::vector<double> ReferenceDecoder::DenseOf(const ReferenceLayer& layer,
                                              const std::vector<double>& normed) const {
  const ReferenceConfig& c = model_.config;
  const size_t width = (layer.attention.has_wide_mlp ? 2 : 1) * c.intermediate_size;
  std::vector<double> inner = MatrixTimesVector(layer.up_proj, width, normed, layer.up_bias);
  if (c.has_gate) {
    const std::vector<double> gate =
        MatrixTimesVector(layer.gate_proj, width, normed, layer.gate_bias);
    for (size_t i = 0; i < inner.size(); ++i) inner[i] *= Activate(c.activation, gate[i]);
  } else {
    for (double& value : inner) {
      value = c.activation == ReferenceActivation::kXielu
                  ? Xielu(value, *layer.alpha_p, *layer.alpha_n, *layer.beta, *layer.eps)
                  : Activate(c.activation, value);
    }
  }
  return MatrixTimesVector(layer.down_proj, c.hidden_size, inner, layer.down_bias);
}

// Granite multiplies what it adds.
void ReferenceDecoder::AddBlock(std::vector<double>& x, const std::vector<double>& output,
                                const float* norm) const {
  const std::vector<double> normed = Norm(output, norm);
  for (size_t i = 0; i < x.size(); ++i) x[i] += model_.config.residual_multiplier * normed[i];
}

const std::vector<double>& ReferenceDecoder::Step(int id) {
  const ReferenceConfig& c = model_.config;
  if (id < 0 || static_cast<size_t>(id) >= c.vocab_size) {
    throw std::runtime_error(std::format("token id {} is not in the vocabulary", id));
  }
  const float* embedding = embed_tokens_ + static_cast<size_t>(id) * c.hidden_size;
  std::vector<double> x(embedding, embedding + c.hidden_size);
  for (double& value : x) value *= c.embedding_multiplier;
  std::vector<double> inputs;
  if (per_layer_) inputs = per_layer_->Inputs(static_cast<size_t>(id), x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    ReferenceLayer& layer = layers_[i];
    AddBlock(x, MixerOf(layer, x), layer.attention_output_norm);
    AddBlock(x, FeedForwardOf(layer, x), layer.mlp_output_norm);
    if (per_layer_) AddBlock(x, per_layer_->Of(i, x, inputs), nullptr);
    if (layer.layer_scalar == nullptr) continue;
    for (double& value : x) value *= *layer.layer_scalar;
  }
  hidden_ = Norm(x, norm_);
  ids_.push_back(id);
  all_hidden_.push_back(hidden_);
  logits_ = MatrixTimesVector(lm_head_, c.vocab_size, hidden_);
  for (double& logit : logits_) {
    logit = SoftCap(logit / c.logits_scaling, c.final_logit_softcapping);
  }
  ++position_;
  return logits_;
}

// As vLLM's classes of Qwen3-Next and Qwen3.5: the token after each position and the hidden state
// there, behind the last norm, are normalized, joined and multiplied by fc, for a layer with keys
// and values of its own. Positions begin with the second token, and only distances matter.
std::vector<double> ReferenceDecoder::GuessOf(int id, const std::vector<double>& hidden) {
  const size_t size = model_.config.hidden_size;
  const float* embedding = embed_tokens_ + static_cast<size_t>(id) * size;
  std::vector<double> joined = Norm({embedding, embedding + size}, mtp_->embedding_norm);
  Append(joined, Norm(hidden, mtp_->hidden_norm));
  std::vector<double> x = MatrixTimesVector(mtp_->fc, size, joined);
  AddBlock(x, MixerOf(mtp_->layer, x), nullptr);
  AddBlock(x, FeedForwardOf(mtp_->layer, x), nullptr);
  ++position_;
  return Norm(x, mtp_->norm);
}

std::vector<double> ReferenceDecoder::Guess(std::span<const int> ids) {
  if (!mtp_ || ids_.empty() || ids.empty()) throw std::runtime_error("nothing to guess from");
  const size_t position = position_;
  position_ = 0;
  mtp_->layer.keys.clear();
  mtp_->layer.values.clear();
  for (size_t i = 1; i < ids_.size(); ++i) GuessOf(ids_[i], all_hidden_[i - 1]);
  std::vector<double> hidden = hidden_;
  for (const int id : ids) hidden = GuessOf(id, hidden);
  position_ = position;
  return MatrixTimesVector(lm_head_, model_.config.vocab_size, hidden);
}

void ReferenceDecoder::Reset() {
  position_ = 0;
  ids_.clear();
  all_hidden_.clear();
  for (ReferenceLayer& layer : layers_) {
    layer.keys.clear();
    layer.values.clear();
    if (layer.short_conv) layer.short_conv->Reset();
    if (layer.delta_net) layer.delta_net->Reset();
    if (layer.mamba) layer.mamba->Reset();
  }
}

std::vector<double> Logits(const ReferenceModel& model, std::span<const int> ids, size_t context) {
  ReferenceDecoder decoder(model, context);
  std::vector<double> logits;
  for (int id : ids) Append(logits, decoder.Step(id));
  return logits;
}

int ArgMax(std::span<const double> logits) {
  return static_cast<int>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<int> Greedy(const ReferenceModel& model, std::span<const int> prompt, size_t count) {
  if (prompt.empty()) throw std::runtime_error("a prompt must have at least one token");
  ReferenceDecoder decoder(model);
  int next = 0;
  for (int id : prompt) next = ArgMax(decoder.Step(id));
  std::vector<int> ids;
  while (ids.size() < count) {
    ids.push_back(next);
    if (ids.size() < count) next = ArgMax(decoder.Step(next));
  }
  return ids;
}

double NegativeLogLikelihood(std::span<const double> logits, int id) {
  const double maximum = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (double logit : logits) sum += std::exp(logit - maximum);
  return maximum + std::log(sum) - logits[static_cast<size_t>(id)];
}

double MeanNegativeLogLikelihood(const ReferenceModel& model, std::span<const int> ids,
                                 size_t context, int bos_token_id) {
  if (context < 2 || ids.empty()) {
    throw std::runtime_error("the likelihood needs a context of 2 or more and at least one id");
  }
  ReferenceDecoder decoder(model);
  double sum = 0.0;
  for (size_t start = 0; start < ids.size(); start += context - 1) {
    decoder.Reset();
    int previous = bos_token_id;
    for (int id : ids.subspan(start, std::min(context - 1, ids.size() - start))) {
      sum += NegativeLogLikelihood(decoder.Step(previous), id);
      previous = id;
    }
  }
  return sum / static_cast<double>(ids.size());
}

}  // namespace cria::reference
