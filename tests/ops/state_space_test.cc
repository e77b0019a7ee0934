#include "ops/state_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "ops/random_floats.h"

namespace cria::ops {
namespace {

// Rows of one head, as a mixer has them: a query, a key, a value and a decay; and what the outputs
// are before the state is read.
struct SpaceText {
  SpaceText(size_t keys, size_t values, size_t count)
      : key_dim(keys),
        value_dim(values),
        num_rows(count),
        rows(RandomFloats(num_rows * stride(), 1)),
        direct(RandomFloats(num_rows * value_dim, 2)) {
    std::mt19937 random(3);
    std::uniform_real_distribution<float> uniform(0.0f, 1.0f);
    for (size_t row = 0; row < num_rows; ++row) rows[(row + 1) * stride() - 1] = uniform(random);
  }

  size_t stride() const { return 2 * key_dim + value_dim + 1; }
  StateUpdates Updates(std::vector<float>& of, size_t first, size_t count) const {
    float* const row = of.data() + first * stride();
    return {row + key_dim, row + 2 * key_dim, row + 2 * key_dim + value_dim, stride(), count};
  }
  StateSpaceReads Reads(const std::vector<float>& of, size_t first,
                        std::vector<float>& outputs) const {
    return {of.data() + first * stride(), stride(), outputs.data() + first * value_dim, value_dim};
  }

  size_t key_dim;
  size_t value_dim;
  size_t num_rows;
  std::vector<float> rows;
  std::vector<float> direct;
};

// The recurrence in double precision: the outputs, and the state at the end.
std::vector<double> NaiveStateSpace(const SpaceText& text, std::vector<double>& state) {
  std::vector<double> outputs(text.direct.begin(), text.direct.end());
  state.assign(text.key_dim * text.value_dim, 0.0);
  for (size_t row = 0; row < text.num_rows; ++row) {
    const float* const query = &text.rows[row * text.stride()];
    const float* const key = query + text.key_dim;
    const float* const value = key + text.key_dim;
    for (size_t i = 0; i < text.key_dim; ++i) {
      for (size_t j = 0; j < text.value_dim; ++j) {
        double& element = state[i * text.value_dim + j];
        element = element * value[text.value_dim] + double{key[i]} * value[j];
        outputs[row * text.value_dim + j] += element * query[i];
      }
    }
  }
  return outputs;
}

TEST(StateSpaceTest, MatchesReferenceAtEverySize) {
  for (const size_t key_dim : {1, 16, 21, 128}) {
    for (const size_t value_dim : {1, 7, 16, 24, 33, 64}) {
      SpaceText text(key_dim, value_dim, 60);
      std::vector<double> expected_state;
      const std::vector<double> expected = NaiveStateSpace(text, expected_state);
      std::vector<float> state(HeadStateSize(key_dim, value_dim), 123.0f);
      std::vector<float> outputs = text.direct;
      StateSpace({key_dim, value_dim, state.data(), true}, {}, text.Updates(text.rows, 0, 60),
                 text.Reads(text.rows, 0, outputs), 60);
      for (size_t i = 0; i < outputs.size(); ++i) {
        ASSERT_NEAR(outputs[i], expected[i], 2e-4 + 2e-5 * std::abs(expected[i]))
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
TEST(StateSpaceTest, EveryDivisionOfATextGivesTheSameBits) {
  constexpr size_t kKeyDim = 21;
  constexpr size_t kValueDim = 24;
  constexpr size_t kNumRows = 40;
  SpaceText text(kKeyDim, kValueDim, kNumRows);
  std::vector<float> whole_state(HeadStateSize(kKeyDim, kValueDim));
  std::vector<float> whole = text.direct;
  StateSpace({kKeyDim, kValueDim, whole_state.data(), true}, {},
             text.Updates(text.rows, 0, kNumRows), text.Reads(text.rows, 0, whole), kNumRows);
  std::mt19937 random(4);
  const auto below = [&](size_t end) {
    return std::uniform_int_distribution<size_t>(0, end - 1)(random);
  };
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<float> state(whole_state.size(), -5.0f);
    std::vector<float> outputs = text.direct;
    size_t num_taken = 0;
    for (size_t done = 0; done < kNumRows;) {
      const size_t count = 1 + below(std::min<size_t>(7, kNumRows - done));
      const size_t num_kept = done - num_taken;
      const size_t more = below(num_kept + count + 1);
      StateSpace({kKeyDim, kValueDim, state.data(), num_taken == 0},
                 text.Updates(text.rows, num_taken, num_kept), text.Updates(text.rows, done, count),
                 text.Reads(text.rows, done, outputs), more);
      num_taken += more;
      done += count;
    }
    ASSERT_EQ(outputs, whole) << "trial " << trial;
    // As when a session is saved.
    const size_t rest = kNumRows - num_taken;
    StateSpace({kKeyDim, kValueDim, state.data(), num_taken == 0},
               text.Updates(text.rows, num_taken, rest), {}, {}, rest);
    ASSERT_EQ(state, whole_state) << "trial " << trial;
  }
}

}  // namespace
}  // namespace cria::ops
