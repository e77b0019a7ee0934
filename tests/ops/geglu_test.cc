#include "ops/geglu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "ops/random_floats.h"
#include "ops/reference_ops.h"

namespace cria::ops {
namespace {

struct Function {
  const char* name;
  void (*run)(const float* gate, const float* up, size_t size, float* output);
  double (*reference)(double x);
};
constexpr Function kFunctions[] = {{"exact", GeGlu, reference::Gelu},
                                   {"tanh", GeGluTanh, reference::GeluTanh}};

TEST(GeGluTest, MatchesReferenceAtEverySize) {
  for (const Function& function : kFunctions) {
    for (const size_t size : kTrickySizes) {
      const std::vector<float> gate = RandomFloats(size, 1, 2.0f);
      const std::vector<float> up = RandomFloats(size, 2);
      std::vector<float> output(size);
      function.run(gate.data(), up.data(), size, output.data());
      for (size_t i = 0; i < size; ++i) {
        const double expected = function.reference(gate[i]) * up[i];
        ASSERT_NEAR(output[i], expected, 5e-6 * std::abs(expected) + 1e-30)
            << function.name << ", size " << size << ", element " << i;
      }
    }
  }
}

TEST(GeGluTest, WorksInPlaceOfTheGate) {
  for (const Function& function : kFunctions) {
    for (const size_t size : kTrickySizes) {
      std::vector<float> gate = RandomFloats(size, 3);
      const std::vector<float> up = RandomFloats(size, 4);
      std::vector<float> expected(size);
      function.run(gate.data(), up.data(), size, expected.data());
      function.run(gate.data(), up.data(), size, gate.data());
      EXPECT_EQ(gate, expected) << function.name << ", size " << size;
    }
  }
}

// The exponential's argument is rounded, which far from 0 is a relative error of the result.
// Vectors of armv7 have 0 in place of subnormal numbers, and the factor of x can be one.
TEST(GeGluTest, IsAccurateOverTheWholeRange) {
  std::vector<float> gate;
  for (float x = -12.5f; x < 20.0f; x += 0.00137f) gate.push_back(x);
  const std::vector<float> up(gate.size(), 1.0f);
  std::vector<float> output(gate.size());
  const double smallest = 13 * double{std::numeric_limits<float>::min()};
  for (const Function& function : kFunctions) {
    function.run(gate.data(), up.data(), gate.size(), output.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double x = gate[i];
      const double expected = function.reference(x);
      // Units of 2^-24: those of the product of s and its polynomial, and of the argument's error.
      const double argument = x > 0 ? 0 : x * x / 2 + 0.08 * std::abs(x * x * x);
      const double tolerance = (6 + 2 * argument) * 0x1p-24;
      ASSERT_NEAR(output[i], expected, tolerance * std::abs(expected) + smallest)
          << function.name << " at " << x;
    }
  }
}

TEST(GeGluTest, ExtremesTendToTheirLimits) {
  constexpr float kHuge = std::numeric_limits<float>::max();
  const std::vector<float> gate = {-kHuge, -1000, -14, 0, 14, 1000, kHuge, NAN};
  const std::vector<float> up(8, 1.0f);
  const std::vector<float> expected = {0, 0, 0, 0, 14, 1000, kHuge};
  for (const Function& function : kFunctions) {
    std::vector<float> output(8);
    function.run(gate.data(), up.data(), 8, output.data());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(output[i], expected[i], 1e-30) << function.name << ' ' << i;
    }
    EXPECT_TRUE(std::isnan(output[7]));
  }
}

}  // namespace
}  // namespace cria::ops
