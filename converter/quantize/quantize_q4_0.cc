#include "converter/quantize/quantize_q4_0.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "converter/quantize/scale_search.h"
#include "core/numeric.h"

namespace cria {
namespace {

constexpr size_t kBlockWeights = 32;
constexpr size_t kBlockBytes = sizeof(uint16_t) + kBlockWeights / 2;
constexpr int kZeroCode = 8;
constexpr CodeRange kCodes = {-8.0f, 7.0f};

// The nearest f16, ties to even, or the largest one.
uint16_t NearestF16(float value) {
  constexpr float kLargest = 65504.0f;
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent, -13);  // Smaller numbers have fewer bits.
  const float magnitude = std::min(std::fabs(value), kLargest);
  const auto units = static_cast<int>(RoundToInteger(std::ldexp(magnitude, 11 - exponent)));
  const int bits = units < 1024 ? units : (exponent + 14) * 1024 + units - 1024;
  return static_cast<uint16_t>(bits | (std::signbit(value) ? 0x8000 : 0));
}

struct CodedBlock {
  uint16_t scale = 0;
  float codes[kBlockWeights] = {};
  double squared_error = INFINITY;
};

// The block with this scale, and the best scale for its codes.
CodedBlock CodeBlock(std::span<const float> weights, float scale, double& best_scale) {
  CodedBlock block = {.scale = NearestF16(scale), .squared_error = 0.0};
  const float stored = F16ToFloat(block.scale);
  const float inverse = stored == 0.0f ? 0.0f : 1.0f / stored;
  double weight_code = 0.0;
  double code_code = 0.0;
  for (size_t i = 0; i < kBlockWeights; ++i) {
    const float code = CodeOf(weights[i], inverse, kCodes);
    const double error = double{weights[i]} - double{stored} * code;
    block.codes[i] = code;
    block.squared_error += error * error;
    weight_code += double{weights[i]} * code;
    code_code += double{code} * code;
  }
  best_scale = code_code > 0.0 ? weight_code / code_code : 0.0;
  return block;
}

CodedBlock BestBlock(std::span<const float> weights) {
  // Codes that the weight of the largest magnitude may have: whole ones for weights that had codes
  // before, which need not use the largest ones.
  constexpr float kLargestCodes[] = {8.0f, 7.5f, 7.0f, 6.5f, 6.0f, 5.5f,
                                     5.0f, 4.0f, 3.0f, 2.0f, 1.0f};
  const float largest =
      *std::ranges::max_element(weights, {}, [](float weight) { return std::fabs(weight); });
  CodedBlock best;
  for (const float code : kLargestCodes) {
    double refitted = 0.0;
    double ignored = 0.0;
    CodeBlock(weights, -largest / code, refitted);
    const CodedBlock block = CodeBlock(weights, static_cast<float>(refitted), ignored);
    if (block.squared_error < best.squared_error) best = block;
  }
  return best;
}

}  // namespace

double QuantizeQ40Row(std::span<const float> row, std::span<std::byte> stored) {
  double squared_error = 0.0;
  for (size_t first = 0; first < row.size(); first += kBlockWeights) {
    const CodedBlock block = BestBlock(row.subspan(first, kBlockWeights));
    std::byte* const bytes = stored.data() + first / kBlockWeights * kBlockBytes;
    std::memcpy(bytes, &block.scale, sizeof block.scale);
    for (size_t i = 0; i < kBlockWeights / 2; ++i) {
      const int low = static_cast<int>(block.codes[i]) + kZeroCode;
      const int high = static_cast<int>(block.codes[i + kBlockWeights / 2]) + kZeroCode;
      bytes[sizeof block.scale + i] = static_cast<std::byte>(low | high << 4);
    }
    squared_error += block.squared_error;
  }
  return squared_error;
}

}  // namespace cria
