#include "ops/delta_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ops/random_floats.h"

namespace cria::ops {
namespace {

// Rows of one head, as a mixer has them: a query, a key, a value that becomes a delta, and a decay.
struct DeltaText {
  DeltaText(size_t keys, size_t values, size_t count)
      : key_dim(keys),
        value_dim(values),
        num_rows(count),
        rows(RandomFloats(num_rows * stride(), 1)),
        betas(num_rows),
        products(num_rows) {
    std::mt19937 random(2);
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    for (size_t row = 0; row < num_rows; ++row) {
      float* const query = &rows[row * stride()];
      float* const key = query + key_dim;
      Normalize(query);
      Normalize(key);
      key[key_dim + value_dim] = uniform(random);  // The decay.
      betas[row] = uniform(random);
      for (size_t i = 0; i < key_dim; ++i) products[row] += query[i] * key[i];
    }
  }

  size_t stride() const { return 2 * key_dim + value_dim + 1; }
  void Normalize(float* head) const {
    float sum = 0.0f;
    for (size_t i = 0; i < key_dim; ++i) sum += head[i] * head[i];
    for (size_t i = 0; i < key_dim; ++i) head[i] /= std::sqrt(sum);
  }
  StateUpdates Updates(std::vector<float>& of, size_t first, size_t count) const {
    float* const row = of.data() + first * stride();
    return {row + key_dim, row + 2 * key_dim, row + 2 * key_dim + value_dim, stride(), count};
  }
  DeltaReads Reads(const std::vector<float>& of, size_t first, std::vector<float>& outputs) const {
    return {.queries = of.data() + first * stride(),
            .query_stride = stride(),
            .betas = betas.data() + first,
            .key_products = products.data() + first,
            .gate_stride = 1,
            .outputs = outputs.data() + first * value_dim,
            .output_stride = value_dim};
  }

  size_t key_dim;
  size_t value_dim;
  size_t num_rows;
  std::vector<float> rows;
  std::vector<float> betas;
  std::vector<float> products;
};

// The rule in double precision, as its paper has it: the outputs, and the state at the end.
std::vector<double> NaiveDeltaRule(const DeltaText& text, std::vector<double>& state) {
  std::vector<double> outputs;
  state.assign(text.key_dim * text.value_dim, 0.0);
  for (size_t row = 0; row < text.num_rows; ++row) {
    const float* const query = &text.rows[row * text.stride()];
    const float* const key = query + text.key_dim;
    const float* const value = key + text.key_dim;
    for (double& x : state) x *= value[text.value_dim];
    for (size_t j = 0; j < text.value_dim; ++j) {
      double seen = 0.0, output = 0.0;
      for (size_t i = 0; i < text.key_dim; ++i) seen += state[i * text.value_dim + j] * key[i];
      for (size_t i = 0; i < text.key_dim; ++i) {
        double& element = state[i * text.value_dim + j];
        element += key[i] * text.betas[row] * (value[j] - seen);
        output += element * query[i];
      }
      outputs.push_back(output);
    }
  }
  return outputs;
}

TEST(DeltaRuleTest, MatchesReferenceAtEverySize) {
  for (const size_t key_dim : {1, 16, 20, 128}) {
    for (const size_t value_dim : {1, 7, 16, 24, 33, 128}) {
      DeltaText text(key_dim, value_dim, 70);
      std::vector<double> expected_state;
      const std::vector<double> expected = NaiveDeltaRule(text, expected_state);
      std::vector<float> state(HeadStateSize(key_dim, value_dim), 123.0f);
      std::vector<float> outputs(expected.size());
      DeltaRule({key_dim, value_dim, state.data(), true}, {}, text.Updates(text.rows, 0, 70),
                text.Reads(text.rows, 0, outputs), 70);
      for (size_t i = 0; i < outputs.size(); ++i) {
        ASSERT_NEAR(outputs[i], expected[i], 2e-5 * (1.0 + std::abs(expected[i])))
            << key_dim << " by " << value_dim << ", number " << i;
      }
      for (size_t i = 0; i < key_dim; ++i) {
        for (size_t j = 0; j < value_dim; ++j) {
          const size_t block = j / kStateColumns * key_dim + i;
          ASSERT_NEAR(state[block * kStateColumns + j % kStateColumns],
                      expected_state[i * value_dim + j], 2e-5);
        }
      }
    }
  }
}

// The state takes up only a part of the rows, and the others are run again as kept rows.
TEST(DeltaRuleTest, EveryDivisionOfATextGivesTheSameBits) {
  constexpr size_t kKeyDim = 20;
  constexpr size_t kValueDim = 24;
  constexpr size_t kNumRows = 40;
  const DeltaText text(kKeyDim, kValueDim, kNumRows);
  const HeadState head = {kKeyDim, kValueDim};
  std::vector<float> whole_rows = text.rows;
  std::vector<float> whole_state(HeadStateSize(kKeyDim, kValueDim));
  std::vector<float> whole(kNumRows * kValueDim);
  DeltaRule({kKeyDim, kValueDim, whole_state.data(), true}, {},
            text.Updates(whole_rows, 0, kNumRows), text.Reads(whole_rows, 0, whole), kNumRows);
  std::mt19937 random(3);
  const auto below = [&](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(random);
  };
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> rows = text.rows;
    std::vector<float> state(whole_state.size(), -5.0f);
    std::vector<float> outputs(whole.size());
    size_t num_taken = 0;
    for (size_t done = 0; done < kNumRows;) {
      const size_t count = 1 + below(std::min<size_t>(7, kNumRows - done));
      const size_t num_kept = done - num_taken;
      const size_t more = below(num_kept + count + 1);
      DeltaRule({head.key_dim, head.value_dim, state.data(), num_taken == 0},
                text.Updates(rows, num_taken, num_kept), text.Updates(rows, done, count),
                text.Reads(rows, done, outputs), more);
      num_taken += more;
      done += count;
    }
    ASSERT_EQ(outputs, whole) << "trial " << trial;
    // As when a session is saved.
    const size_t rest = kNumRows - num_taken;
    DeltaRule({head.key_dim, head.value_dim, state.data(), num_taken == 0},
              text.Updates(rows, num_taken, rest), {}, {}, rest);
    ASSERT_EQ(state, whole_state) << "trial " << trial;
  }
}

}  // namespace
}  // namespace cria::ops
