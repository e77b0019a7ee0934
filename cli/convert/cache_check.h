#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/platform.h"
#include "cria/error.h"

namespace cria::cli {

// By how much more than f16 an int8 cache may change a model's predictions to be its default, in
// nats of Kullback-Leibler divergence. Both are compared with f32, because where the last digits of
// rounded activations decide, f16 alone changes them by up to 0.004.
inline constexpr double kMaxInt8Divergence = 0.004;

// Mean divergences of a model's predictions with an int8 and an f16 cache from those with f32.
struct CacheCheck {
  size_t num_positions = 0;  // 0: nothing was measured.
  double int8_divergence = 0.0;
  double f16_divergence = 0.0;
  // Why nothing was measured, which says nothing about the model; absent also if the text has too
  // few tokens of its vocabulary.
  std::optional<Error> obstacle = {};

  bool prefers_f16() const {
    // NaN prefers f16.
    return num_positions != 0 && !(int8_divergence - f16_divergence <= kMaxInt8Divergence);
  }
};

// Runs the first tokens of the text that ships with the converter through the model, with each type
// of cache by turns: at a time, only one engine is loaded. It keeps the logits of the measured
// positions with f32, and compares the others when they are computed.
CacheCheck CheckCache(const platform::File& model, size_t num_threads);

// What users are told; empty if the cache is in int8, as most are.
std::string CheckText(const CacheCheck& check);

}  // namespace cria::cli
