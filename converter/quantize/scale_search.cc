#include "converter/quantize/scale_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "converter/quantize/lanes.h"
#include "converter/quantize/minimum_search.h"
#include "core/numeric.h"

namespace cria {
namespace {

// The result of rounding with one scale. The sums also give the best scale for the same codes:
// value_code / code_code.
struct Evaluation {
  float scale;
  float error;       // Sum of (value - scale * code)².
  float value_code;  // Sum of value * code.
  float code_code;   // Sum of code².

  float refitted_scale() const { return value_code / code_code; }
  // The remaining error if these codes get their best scale.
  float refitted_error() const {
    const float distance = scale - refitted_scale();
    return error - code_code * distance * distance;
  }
};

// Always inlined, so that it is compiled for the instructions of each function that calls it.
[[gnu::always_inline]] inline Evaluation EvaluateInLanes(std::span<const float> values, float scale,
                                                         CodeRange range) {
  const float inverse_scale = 1.0f / scale;
  Lanes error = {};
  Lanes value_code = {};
  Lanes code_code = {};
  const float* const first = values.data();
  for (size_t i = 0; i < values.size(); i += kScaleSearchLanes) {
    Lanes value;
    std::memcpy(&value, first + i, sizeof(value));
    Lanes code = value;
    RoundToCodes(code, inverse_scale, range);
    const Lanes residual = value - scale * code;
    error += residual * residual;
    value_code += value * code;
    code_code += code * code;
  }
  return {scale, SumLanes(error), SumLanes(value_code), SumLanes(code_code)};
}

#if defined(__x86_64__)
// Gives the same results, and is compiled for processors that compute eight lanes at once.
[[gnu::target("avx2")]] Evaluation EvaluateWithAvx2(std::span<const float> values, float scale,
                                                    CodeRange range) {
  return EvaluateInLanes(values, scale, range);
}
#endif

// The size of `values` must be a multiple of kScaleSearchLanes.
Evaluation Evaluate(std::span<const float> values, float scale, CodeRange range) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return EvaluateWithAvx2(values, scale, range);
#endif
  return EvaluateInLanes(values, scale, range);
}

float NextBf16(float value, int direction) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) +
                              static_cast<uint32_t>(direction) * 0x10000u);
}

class Search {
 public:
  Search(std::span<const float> values, const ScaleRule& rule) : values_(values), rule_(rule) {}

  // Keeps the best scale so far, as it will be stored.
  void Try(float scale) {
    scale = AsStored(scale, rule_.type);
    const Evaluation evaluation = Evaluate(values_, scale, rule_.range);
    if (has_best_ && evaluation.error >= best_.error) return;
    best_ = evaluation;
    has_best_ = true;
  }

  // Evaluates the grid by the error after refitting, and tries the best scale after refitting.
  void TryGrid(float largest_magnitude) {
    const ScaleGrid grid = rule_.grid;
    float min_error = INFINITY;
    float scale = 0.0f;
    for (int i = -grid.whole_codes; i < grid.count; ++i) {
      const auto step = static_cast<float>(i);
      const float code = i < 0 ? -step : grid.first + grid.step * step;
      const Evaluation evaluation = Evaluate(values_, largest_magnitude / code, rule_.range);
      if (evaluation.code_code == 0.0f || evaluation.refitted_error() >= min_error) continue;
      min_error = evaluation.refitted_error();
      scale = evaluation.refitted_scale();
    }
    if (scale > 0.0f) Try(scale);
  }

  // Alternates between the best codes for a scale and the best scale for the codes, which never
  // increases the error, and then tries the neighbouring bf16 numbers.
  void Refine() {
    constexpr int kMaxRounds = 4;
    for (int round = 0; round < kMaxRounds && best_.code_code > 0.0f; ++round) {
      const float before = best_.error;
      Try(best_.refitted_scale());
      if (best_.error == before) break;
    }
    if (rule_.type != ScaleType::kBf16) return;
    for (const int direction : {-1, 1}) {
      float before = INFINITY;
      while (best_.error < before) {
        before = best_.error;
        Try(NextBf16(best_.scale, direction));
      }
    }
  }

  ScaleFit best() const { return {.scale = best_.scale, .squared_error = best_.error}; }

 private:
  std::span<const float> values_;
  const ScaleRule& rule_;
  Evaluation best_ = {};
  bool has_best_ = false;
};

}  // namespace

ScaleFit SearchScale(std::span<const float> values, const ScaleRule& rule,
                     std::span<float> scratch) {
  if (rule.has_minimum) return SearchScaleAndMinimum(values, rule);
  float largest_magnitude = 0.0f;
  for (const float value : values) {
    largest_magnitude = std::max(largest_magnitude, std::fabs(value));
  }
  if (largest_magnitude < kMinMagnitude) return {};

  // The search scales the values to magnitudes around 1, so that no square overflows or underflows.
  // Multiplying by a power of two does not round. The power must be a normal number, because
  // threads of a pool flush others to zero.
  constexpr int kMinNormalExponent = std::numeric_limits<float>::min_exponent - 1;
  int exponent = 0;
  std::frexp(largest_magnitude, &exponent);
  exponent = std::min(exponent, -kMinNormalExponent);
  const float unit = std::ldexp(1.0f, -exponent);
  largest_magnitude *= unit;
  const size_t padded_size = ScaleSearchScratch(values.size());
  for (size_t i = 0; i < values.size(); ++i) scratch[i] = values[i] * unit;
  std::fill(scratch.begin() + values.size(), scratch.begin() + padded_size, 0.0f);

  Search search(scratch.first(padded_size), rule);
  search.Try(largest_magnitude / rule.range.max);
  search.Try(largest_magnitude / -rule.range.min);
  search.TryGrid(largest_magnitude);
  search.Refine();
  const ScaleFit best = search.best();
  return {.scale = std::ldexp(best.scale, exponent),
          .squared_error = std::ldexp(best.squared_error, 2 * exponent)};
}

}  // namespace cria
