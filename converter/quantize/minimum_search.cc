#include "converter/quantize/minimum_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "converter/quantize/lanes.h"

namespace cria {
namespace {

// The result of rounding with one scale and minimum.
struct PairEvaluation {
  float scale;
  float minimum;
  float error;       // Sum of (value - (scale * code - minimum))².
  float value;       // Sum of value + minimum.
  float value_code;  // Sum of (value + minimum) * code.
  float code;        // Sum of codes.
  float code_code;   // Sum of code².
};

// Always inlined, so that it is compiled for the instructions of each function that calls it.
[[gnu::always_inline]] inline PairEvaluation EvaluatePairInLanes(std::span<const float> values,
                                                                 float scale, float minimum,
                                                                 CodeRange range) {
  const float inverse_scale = 1.0f / scale;
  Lanes error = {};
  Lanes sum = {};
  Lanes value_code = {};
  Lanes code_sum = {};
  Lanes code_code = {};
  for (size_t i = 0; i < values.size(); i += kScaleSearchLanes) {
    Lanes value = {};
    const size_t count = std::min(kScaleSearchLanes, values.size() - i);
    if (count == kScaleSearchLanes) {
      std::memcpy(&value, values.data() + i, sizeof(value));
      value += minimum;
    } else {
      // The lanes behind the values have code 0 and add nothing.
      for (size_t lane = 0; lane < count; ++lane) value[lane] = values[i + lane] + minimum;
    }
    Lanes code = value;
    RoundToCodes(code, inverse_scale, range);
    const Lanes residual = value - scale * code;
    error += residual * residual;
    sum += value;
    value_code += value * code;
    code_sum += code;
    code_code += code * code;
  }
  return {scale,
          minimum,
          SumLanes(error),
          SumLanes(sum),
          SumLanes(value_code),
          SumLanes(code_sum),
          SumLanes(code_code)};
}

#if defined(__x86_64__)
// Gives the same results, and is compiled for processors that compute eight lanes at once.
[[gnu::target("avx2")]] PairEvaluation EvaluatePairWithAvx2(std::span<const float> values,
                                                            float scale, float minimum,
                                                            CodeRange range) {
  return EvaluatePairInLanes(values, scale, minimum, range);
}
#endif

PairEvaluation EvaluatePair(std::span<const float> values, float scale, float minimum,
                            CodeRange range) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return EvaluatePairWithAvx2(values, scale, minimum, range);
#endif
  return EvaluatePairInLanes(values, scale, minimum, range);
}

// The scale and minimum that fit an evaluation's codes best.
struct PairRefit {
  double scale;
  double minimum;
  double error;
};

// Absent if the codes are all the same. Least squares of value + minimum = scale * code + rest.
std::optional<PairRefit> RefitPair(const PairEvaluation& sums, size_t count) {
  const auto n = static_cast<double>(count);
  const double determinant = n * sums.code_code - double{sums.code} * sums.code;
  if (determinant <= 0.0) return std::nullopt;
  const double scale = (n * sums.value_code - double{sums.code} * sums.value) / determinant;
  const double rest = (sums.value - scale * sums.code) / n;
  // How far each code's number moves is shift * code + rest, and the error falls by its squares.
  const double shift = scale - sums.scale;
  const double saved =
      shift * shift * sums.code_code + 2.0 * shift * rest * sums.code + n * rest * rest;
  return PairRefit{scale, sums.minimum - rest, sums.error - saved};
}

class PairSearch {
 public:
  PairSearch(std::span<const float> values, const ScaleRule& rule) : values_(values), rule_(rule) {}

  // Keeps the best so far, as it will be stored.
  void Try(double scale, double minimum) {
    const float stored_scale = AsStored(scale, rule_.type);
    if (!std::isnormal(stored_scale) || stored_scale < 0.0f) return;
    const PairEvaluation evaluation =
        EvaluatePair(values_, stored_scale, AsStored(minimum, rule_.type), rule_.range);
    if (has_best_ && evaluation.error >= best_.error) return;
    best_ = evaluation;
    has_best_ = true;
  }

  // Evaluates the grid by the error after refitting, and tries the best after refitting.
  void TryGrid(float smallest, float largest) {
    const ScaleGrid grid = rule_.grid;
    const double middle = 0.5 * (double{smallest} + largest);
    std::optional<PairRefit> best;
    for (int i = 0; i < grid.count; ++i) {
      const float code = grid.first + grid.step * static_cast<float>(i);
      const float scale = (largest - smallest) / code;
      const double minimum = 0.5 * rule_.range.max * scale - middle;
      const std::optional<PairRefit> refit = RefitPair(
          EvaluatePair(values_, scale, static_cast<float>(minimum), rule_.range), values_.size());
      if (refit && (!best || refit->error < best->error)) best = refit;
    }
    if (best) Try(best->scale, best->minimum);
  }

  // Alternates between the best codes and the best scale and minimum for the codes.
  void Refine() {
    constexpr int kMaxRounds = 4;
    for (int round = 0; round < kMaxRounds; ++round) {
      const float before = best_.error;
      const std::optional<PairRefit> refit = RefitPair(best_, values_.size());
      if (refit) Try(refit->scale, refit->minimum);
      if (best_.error == before) return;
    }
  }

  ScaleFit best() const { return {best_.scale, best_.minimum, best_.error}; }

 private:
  std::span<const float> values_;
  const ScaleRule& rule_;
  PairEvaluation best_ = {};
  bool has_best_ = false;
};

}  // namespace

ScaleFit SearchScaleAndMinimum(std::span<const float> values, const ScaleRule& rule) {
  const auto [smallest, largest] = std::ranges::minmax(values);
  PairSearch search(values, rule);
  // Equal values are their minimum.
  if (largest - smallest < kMinMagnitude) {
    if (std::max(largest, -smallest) < kMinMagnitude) return {};
    search.Try(1.0, -smallest);
    return search.best();
  }
  search.Try((double{largest} - smallest) / rule.range.max, -smallest);
  search.TryGrid(smallest, largest);
  search.Refine();
  return search.best();
}

}  // namespace cria
