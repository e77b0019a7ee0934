#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "converter/calibrate/matrix.h"
#include "core/thread_pool.h"
#include "model/config.h"

namespace cria {

// The steps of a decoder's layer between its products with matrices, in f32, for many rows of
// activations at once. Unlike the runtime's, they give the same on every processor. A row is one
// token; rows of a window follow each other.

// output[i] = weight[i] * input[i] / sqrt(mean(input^2) + epsilon), for each row.
void NormalizeRows(const ThreadPool& threads, ConstMatrixView input, std::span<const float> weight,
                   float epsilon, MatrixView output);

// Adds `bias`, unless it is empty, to each row.
void AddBias(std::span<const float> bias, MatrixView rows);

// What the attention of one layer takes besides its input.
struct AttentionWeights {
  std::vector<float> q_norm;  // [head_dim], or [query_channels] if it is joint, or empty.
  std::vector<float> k_norm;  // The keys' norm.
  std::vector<float> sinks;   // [num_attention_heads], or empty.
};

// The cosines and sines of a kind of layers; empty for layers without rope.
struct RopeTable {
  std::vector<float> cosines;  // [positions, rotary_channels / 2]
  std::vector<float> sines;    // The same.
};
RopeTable MakeRopeTable(const ModelConfig& config, const LayerKind& kind, size_t positions);

// What o_proj reads, [rows, query_channels], from the products with qkv_proj and their bias, [rows,
// qkv_channels], which it overwrites. The gates of attn_output_gate are not used. Every window of
// `window_tokens` rows is a text of its own.
void Attend(const ThreadPool& threads, const ModelConfig& config, const LayerKind& kind,
            const AttentionWeights& weights, const RopeTable& rope, size_t window_tokens,
            MatrixView qkv, MatrixView output);

// Multiplies what attention writes, [rows, channels], by the sigmoids of gates, [rows, gates]: one
// gate for as many channels as there are for each.
void MultiplyByGates(const ThreadPool& threads, ConstMatrixView gates, MatrixView output);

// What the out_proj of a short convolution reads, [rows, hidden_size], from the products with
// in_proj and their bias, [rows, 3 * hidden_size]. `taps` are as the model has them; `bias` may be
// empty. Tokens before a window of `window_tokens` rows are zeros.
void Convolve(const ThreadPool& threads, std::span<const float> taps, std::span<const float> bias,
              size_t window_tokens, ConstMatrixView bcx, MatrixView output);

// What down_proj reads, [rows, intermediate_size], from the products with gate_up_proj and their
// bias, [rows, 2 * intermediate_size]: up * act(gate).
void Activate(const ThreadPool& threads, HiddenAct act, ConstMatrixView gate_up, MatrixView output);

// Activates with gpt-oss's function, as ops::ClampedSwiGlu computes it.
void ActivateClamped(const ThreadPool& threads, float alpha, float limit, ConstMatrixView gate_up,
                     MatrixView output);

// Writes act(up), [rows, intermediate_size], for a feed-forward without a gate. `xielu` has the
// numbers of the layer, if the activation has any.
void ActivateUngated(const ThreadPool& threads, HiddenAct act, std::span<const float> xielu,
                     ConstMatrixView up, MatrixView output);

// Rounds each row as the runtime stores the inputs of a product with a quantized matrix: to int8,
// in blocks of 32 values with a range of their own.
void RoundInputs(const ThreadPool& threads, MatrixView rows);

}  // namespace cria
