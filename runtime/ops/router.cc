#include "ops/router.h"

#include <cmath>

#include "ops/simd_targets.h"
#include "ops/vector.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/router.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace cria::ops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The dot products of kRows rows with one row of weights, each with two sums, of which one takes
// every other vector. So a row's result does not depend on how many rows there are.
template <size_t kRows>
HWY_INLINE void DotRows(const float* rows, size_t stride, const float* HWY_RESTRICT weights,
                        size_t size, float* results, size_t results_stride) {
  const hn::ScalableTag<float> d;
  using Vector = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  Vector even[kRows];
  Vector odd[kRows];
  for (size_t r = 0; r < kRows; ++r) even[r] = odd[r] = hn::Zero(d);
  size_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const Vector first = hn::LoadU(d, weights + i);
    const Vector second = hn::LoadU(d, weights + i + lanes);
    for (size_t r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(hn::LoadU(d, rows + r * stride + i), first, even[r]);
      odd[r] = hn::MulAdd(hn::LoadU(d, rows + r * stride + i + lanes), second, odd[r]);
    }
  }
  for (; i < size; i += lanes) {
    const size_t count = HWY_MIN(lanes, size - i);
    const Vector last = hn::LoadN(d, weights + i, count);
    for (size_t r = 0; r < kRows; ++r) {
      even[r] = hn::MulAdd(hn::LoadN(d, rows + r * stride + i, count), last, even[r]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    results[r * results_stride] = hn::ReduceSum(d, hn::Add(even[r], odd[r]));
  }
}

void RouterScores(const RouterRows& rows, const float* weights, size_t outputs, size_t inputs,
                  float* scores, size_t scores_stride) {
  // As many as the sums of these rows take half of the vector registers of NEON.
  constexpr size_t kRows = 4;
  size_t row = 0;
  for (; row + kRows <= rows.num_rows; row += kRows) {
    for (size_t i = 0; i < outputs; ++i) {
      DotRows<kRows>(rows.values + row * rows.stride, rows.stride, weights + i * inputs, inputs,
                     scores + row * scores_stride + i, scores_stride);
    }
  }
  for (; row < rows.num_rows; ++row) {
    for (size_t i = 0; i < outputs; ++i) {
      DotRows<1>(rows.values + row * rows.stride, rows.stride, weights + i * inputs, inputs,
                 scores + row * scores_stride + i, scores_stride);
    }
  }
}

void AddScaled(const float* addend, float factor, size_t size, float* accumulator) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(d, factor);
  size_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    const auto sum = hn::MulAdd(scale, hn::LoadU(d, addend + i), hn::LoadU(d, accumulator + i));
    hn::StoreU(sum, d, accumulator + i);
  }
  if (i < size) {
    const size_t rest = size - i;
    const auto sum =
        hn::MulAdd(scale, hn::LoadN(d, addend + i, rest), hn::LoadN(d, accumulator + i, rest));
    hn::StoreN(sum, d, accumulator + i, rest);
  }
}

}  // namespace cria::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cria::ops {

HWY_EXPORT(RouterScores);
HWY_EXPORT(AddScaled);

void AddScaled(const float* addend, float factor, size_t size, float* accumulator) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(addend, factor, size, accumulator);
}

void RouterScores(const RouterRows& rows, const float* weights, size_t outputs, size_t inputs,
                  float* scores, size_t scores_stride) {
  HWY_DYNAMIC_DISPATCH(RouterScores)(rows, weights, outputs, inputs, scores, scores_stride);
}

namespace {

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

void MakeSigmoidWeights(std::span<const float> scores, bool normalize,
                        std::span<const uint32_t> experts, std::span<float> weights) {
  constexpr float kLeastSum = 1e-6f;
  float sum = kLeastSum;
  for (size_t i = 0; i < experts.size(); ++i) {
    weights[i] = Sigmoid(scores[experts[i]]);
    sum += weights[i];
  }
  if (!normalize) return;
  for (float& weight : weights) weight /= sum;
}

}  // namespace

void ChooseExperts(std::span<const float> scores, const ExpertChoice& choice,
                   std::span<uint32_t> experts, std::span<float> weights) {
  // `weights` are what the chosen ones were chosen by until the end.
  size_t num_chosen = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    float score = scores[i];
    if (choice.has_sigmoids) {
      score = Sigmoid(score) + (choice.bias == nullptr ? 0.0f : choice.bias[i]);
    }
    if (num_chosen == experts.size() && !(score > weights[num_chosen - 1])) continue;
    if (num_chosen < experts.size()) ++num_chosen;
    size_t place = num_chosen - 1;
    for (; place > 0 && score > weights[place - 1]; --place) {
      weights[place] = weights[place - 1];
      experts[place] = experts[place - 1];
    }
    weights[place] = score;
    experts[place] = static_cast<uint32_t>(i);
  }
  if (choice.has_sigmoids) return MakeSigmoidWeights(scores, choice.normalize, experts, weights);
  const float largest = weights.front();
  const double sum = choice.normalize ? SumOfExps(weights.data(), weights.size(), largest)
                                      : SumOfExps(scores.data(), scores.size(), largest);
  for (float& weight : weights) {
    weight = static_cast<float>(std::exp(double{weight} - double{largest}) / sum);
  }
}

float SharedExpertWeight(const float* row, const float* gate, size_t size) {
  float score = 0.0f;
  RouterScores({.values = row, .stride = size, .num_rows = 1}, gate, 1, size, &score, 1);
  return Sigmoid(score);
}

}  // namespace cria::ops
#endif  // HWY_ONCE
