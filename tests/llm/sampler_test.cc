#include "llm/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace cria {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Nothing but temperature 1.
constexpr SamplerOptions kNeutral = {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .temperature = 1.0f};

Sampler Make(const SamplerOptions& options, size_t vocab_size) {
  auto sampler = Sampler::Create(options, vocab_size);
  EXPECT_TRUE(sampler) << sampler.error().message();
  return std::move(*sampler);
}

int32_t SampleOne(const SamplerOptions& options, std::vector<float> logits,
                  const std::vector<int32_t>& history = {}) {
  Sampler sampler = Make(options, logits.size());
  const auto token = sampler.Sample(logits, history);
  EXPECT_TRUE(token) << token.error().message();
  return token.value_or(-1);
}

std::map<int32_t, int> CountSamples(const SamplerOptions& options, const std::vector<float>& logits,
                                    int draws) {
  Sampler sampler = Make(options, logits.size());
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = logits;
    const auto token = sampler.Sample(copy, {});
    EXPECT_TRUE(token);
    ++counts[token.value_or(-1)];
  }
  return counts;
}

// The tokens that can come, from many draws.
std::set<int32_t> Support(const SamplerOptions& options, const std::vector<float>& logits) {
  std::set<int32_t> ids;
  for (const auto& [id, count] : CountSamples(options, logits, 2000)) ids.insert(id);
  return ids;
}

std::vector<float> LogitsOf(const std::vector<float>& probabilities) {
  std::vector<float> logits;
  for (const float probability : probabilities) logits.push_back(std::log(probability) + 3.0f);
  return logits;
}

// Pearson's statistic against the expected probabilities.
double ChiSquare(const std::map<int32_t, int>& counts, const std::vector<double>& probabilities,
                 int draws) {
  double sum = 0.0;
  for (size_t id = 0; id < probabilities.size(); ++id) {
    const auto found = counts.find(static_cast<int32_t>(id));
    const double observed = found == counts.end() ? 0 : found->second;
    const double expected = probabilities[id] * draws;
    sum += (observed - expected) * (observed - expected) / expected;
  }
  return sum;
}

using Ids = std::set<int32_t>;

TEST(SamplerTest, TemperatureZeroTakesTheMostLikelyAndTheLowestOfEquals) {
  EXPECT_EQ(SampleOne({.temperature = 0.0f}, {-1.0f, 3.0f, 2.0f}), 1);
  EXPECT_EQ(SampleOne({.temperature = 0.0f}, {1.0f, 3.0f, 3.0f, 3.0f}), 1);
  EXPECT_EQ(SampleOne({.temperature = 0.0f}, {-5.0f, -5.0f}), 0);
  EXPECT_EQ(SampleOne({.temperature = 0.0f}, {7.0f}), 0);
}

TEST(SamplerTest, TopKOfOneIsGreedyToo) {
  SamplerOptions options = kNeutral;
  options.top_k = 1;
  EXPECT_EQ(Support(options, {1.0f, 3.0f, 3.0f, 2.9f}), Ids{1});
}

TEST(SamplerTest, WhatIsNotANumberIsNeverChosen) {
  EXPECT_EQ(SampleOne({.temperature = 0.0f}, {kNaN, 1.0f, kNaN, 2.0f, kNaN}), 3);
  EXPECT_EQ(Support(kNeutral, {kNaN, 1.0f, kNaN, 1.0f}), (Ids{1, 3}));
  SamplerOptions options = kNeutral;
  options.top_k = 2;
  EXPECT_EQ(Support(options, {kNaN, 1.0f, kNaN, 1.0f, 0.0f}), (Ids{1, 3}));
  EXPECT_EQ(Support(kNeutral, {-kInfinity, 1.0f, -kInfinity, 1.0f}), (Ids{1, 3}));
}

TEST(SamplerTest, NoNumberAtAllIsAnError) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const float value : {kNaN, -kInfinity, kInfinity}) {
      SamplerOptions options = kNeutral;
      options.temperature = temperature;
      Sampler sampler = Make(options, 3);
      std::vector<float> logits(3, value);
      const auto token = sampler.Sample(logits, {});
      ASSERT_FALSE(token) << value;
      EXPECT_EQ(token.error().code(), ErrorCode::kInternal);
    }
  }
}

TEST(SamplerTest, TopKKeepsTheKMostLikely) {
  const std::vector<float> logits = {1.0f, 1.4f, 1.1f, 1.3f, 1.2f};
  SamplerOptions options = kNeutral;
  options.top_k = 3;
  EXPECT_EQ(Support(options, logits), (Ids{1, 3, 4}));
  options.top_k = 0;
  EXPECT_EQ(Support(options, logits), (Ids{0, 1, 2, 3, 4}));
  options.top_k = 100;
  EXPECT_EQ(Support(options, logits), (Ids{0, 1, 2, 3, 4}));
  // Equal tokens with the lower ids stay.
  options.top_k = 2;
  EXPECT_EQ(Support(options, {1.0f, 1.0f, 1.0f, 1.0f}), (Ids{0, 1}));
}

TEST(SamplerTest, TopKAgreesWithSortingOnLargeVocabularies) {
  std::mt19937 random(5);
  std::vector<float> logits(5000);
  for (float& logit : logits) logit = static_cast<float>(random() % 1000) / 1000.0f;
  std::vector<int32_t> order(logits.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](int32_t id) { return logits[static_cast<size_t>(id)]; });
  SamplerOptions options = kNeutral;
  options.top_k = 17;
  EXPECT_EQ(Support(options, logits), Ids(order.begin(), order.begin() + 17));
}

TEST(SamplerTest, TopPKeepsTheFewestThatReachIt) {
  const std::vector<float> logits = LogitsOf({0.15f, 0.5f, 0.05f, 0.3f});
  const auto with = [&](float top_p) {
    SamplerOptions options = kNeutral;
    options.top_p = top_p;
    return Support(options, logits);
  };
  EXPECT_EQ(with(0.0f), Ids{1});
  EXPECT_EQ(with(0.49f), Ids{1});
  EXPECT_EQ(with(0.51f), (Ids{1, 3}));
  EXPECT_EQ(with(0.79f), (Ids{1, 3}));
  EXPECT_EQ(with(0.81f), (Ids{0, 1, 3}));
  EXPECT_EQ(with(0.96f), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(with(1.0f), (Ids{0, 1, 2, 3}));
}

TEST(SamplerTest, TopPIsTakenOfWhatTopKHasLeft) {
  SamplerOptions options = kNeutral;
  options.top_k = 2;
  // 0.5 of 0.8 is 0.625.
  options.top_p = 0.62f;
  EXPECT_EQ(Support(options, LogitsOf({0.15f, 0.5f, 0.05f, 0.3f})), Ids{1});
  options.top_p = 0.63f;
  EXPECT_EQ(Support(options, LogitsOf({0.15f, 0.5f, 0.05f, 0.3f})), (Ids{1, 3}));
}

TEST(SamplerTest, MinPIsRelativeToTheMostLikely) {
  const std::vector<float> logits = LogitsOf({0.15f, 0.5f, 0.05f, 0.3f});
  const auto with = [&](float min_p) {
    SamplerOptions options = kNeutral;
    options.min_p = min_p;
    return Support(options, logits);
  };
  EXPECT_EQ(with(0.09f), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(with(0.11f), (Ids{0, 1, 3}));
  EXPECT_EQ(with(0.31f), (Ids{1, 3}));
  EXPECT_EQ(with(0.61f), Ids{1});
  EXPECT_EQ(with(1.0f), Ids{1});
  EXPECT_EQ(Support({.top_k = 0, .top_p = 1.0f, .min_p = 1.0f, .temperature = 1.0f}, {2.0f, 2.0f}),
            (Ids{0, 1}));
}

TEST(SamplerTest, TruncationComesBeforeTemperature) {
  // A high temperature flattens what is left but brings nothing back.
  SamplerOptions options = kNeutral;
  options.temperature = 100.0f;
  options.min_p = 0.5f;
  EXPECT_EQ(Support(options, LogitsOf({0.15f, 0.5f, 0.05f, 0.3f})), (Ids{1, 3}));
  options.min_p = 0.0f;
  options.top_p = 0.79f;
  EXPECT_EQ(Support(options, LogitsOf({0.15f, 0.5f, 0.05f, 0.3f})), (Ids{1, 3}));
}

TEST(SamplerTest, FrequenciesFollowTheTemperature) {
  const std::vector<float> logits = {0.0f, 1.0f, -0.5f, 2.0f, 1.0f};
  constexpr int kDraws = 20000;
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    SamplerOptions options = kNeutral;
    options.temperature = temperature;
    options.seed = 42;
    std::vector<double> probabilities;
    double sum = 0.0;
    for (const float logit : logits) {
      probabilities.push_back(std::exp(logit / temperature));
      sum += probabilities.back();
    }
    for (double& probability : probabilities) probability /= sum;
    // Four degrees of freedom: 18.5 is passed once in a thousand seeds, and this seed is fixed.
    EXPECT_LT(ChiSquare(CountSamples(options, logits, kDraws), probabilities, kDraws), 18.5)
        << temperature;
    // And the statistic can tell: the frequencies of another temperature are far away.
    options.temperature = temperature * 1.2f;
    EXPECT_GT(ChiSquare(CountSamples(options, logits, kDraws), probabilities, kDraws), 40.0);
  }
}

TEST(SamplerTest, ExtremeTemperaturesAreSafe) {
  SamplerOptions options = kNeutral;
  options.temperature = 1e-30f;
  EXPECT_EQ(Support(options, {1.0f, 1.0001f, 0.0f}), Ids{1});
  options.temperature = 1e30f;
  EXPECT_EQ(Support(options, {1.0f, 50.0f, 0.0f}), (Ids{0, 1, 2}));
}

TEST(SamplerTest, ThePenaltyDividesPositiveAndMultipliesNegativeLogits) {
  const SamplerOptions options = {.repeat_penalty = 2.0f, .temperature = 0.0f};
  const std::vector<int32_t> history = {0, 0, 0};
  // 4 becomes 2, once for several occurrences.
  EXPECT_EQ(SampleOne(options, {4.0f, 2.1f}, history), 1);
  EXPECT_EQ(SampleOne(options, {4.0f, 1.9f}, history), 0);
  // -4 becomes -8.
  EXPECT_EQ(SampleOne(options, {-4.0f, -7.9f}, history), 1);
  EXPECT_EQ(SampleOne(options, {-4.0f, -8.1f}, history), 0);
  EXPECT_EQ(SampleOne(options, {0.0f, -0.1f}, history), 0);
}

TEST(SamplerTest, TheLogitsAreTheSameAfterwards) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 0.1f + static_cast<float>(i % 13);
  const std::vector<float> before = logits;
  const std::vector<int32_t> history = {5, 7, 5, 99, 0, 12};
  for (const float temperature : {0.0f, 1.0f}) {
    Sampler sampler = Make({.logit_bias = {{5, 0.3f}, {8, -kInfinity}, {5, 1.7f}, {50, 1e6f}},
                            .repeat_penalty = 1.3f,
                            .temperature = temperature},
                           logits.size());
    EXPECT_EQ(sampler.Sample(logits, history).value_or(-1), 50);
    EXPECT_EQ(logits, before);
  }
  // Also if there is nothing to choose from.
  std::vector<float> none = {kNaN, -kInfinity};
  Sampler sampler = Make({.logit_bias = {{0, 1.0f}, {1, 1.0f}}, .repeat_penalty = 2.0f}, 2);
  EXPECT_FALSE(sampler.Sample(none, std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(std::isnan(none[0]));
  EXPECT_EQ(none[1], -kInfinity);
}

TEST(SamplerTest, TheBiasIsAddedBeforeAllOtherSteps) {
  SamplerOptions options = {.logit_bias = {{0, 2.5f}}, .temperature = 0.0f};
  EXPECT_EQ(SampleOne(options, {1.0f, 3.0f, 3.4f}), 0);
  EXPECT_EQ(SampleOne(options, {1.0f, 3.0f, 3.6f}), 2);
  // 1 + 2.5 is halved: the penalty sees the sum.
  options.repeat_penalty = 2.0f;
  EXPECT_EQ(SampleOne(options, {1.0f, 1.8f}, {0}), 1);
  EXPECT_EQ(SampleOne(options, {1.0f, 1.7f}, {0}), 0);
  // Addends of one token add up.
  EXPECT_EQ(SampleOne({.logit_bias = {{0, 1.0f}, {0, 1.5f}}, .temperature = 0.0f}, {0.0f, 2.0f}),
            0);
  // A token that top_k would drop is kept, and one that it would keep is dropped.
  SamplerOptions two = kNeutral;
  two.top_k = 2;
  two.logit_bias = {{3, 5.0f}, {0, -5.0f}};
  EXPECT_EQ(Support(two, {1.4f, 1.3f, 1.2f, 1.0f}), (Ids{1, 3}));
}

TEST(SamplerTest, MinusInfinityForbidsAToken) {
  EXPECT_EQ(SampleOne({.logit_bias = {{1, -kInfinity}}, .temperature = 0.0f}, {1.0f, 9.0f}), 0);
  SamplerOptions options = kNeutral;
  options.logit_bias = {{1, -kInfinity}, {2, -kInfinity}};
  EXPECT_EQ(Support(options, {1.0f, 9.0f, 9.0f, 1.0f}), (Ids{0, 3}));
  // Nothing that is added later brings it back.
  options.logit_bias = {{1, -kInfinity}, {1, 1e6f}};
  EXPECT_EQ(Support(options, {1.0f, 9.0f}), Ids{0});
}

TEST(SamplerTest, ForbiddingEveryTokenIsTheCallersMistake) {
  for (const float temperature : {0.0f, 1.0f}) {
    Sampler sampler =
        Make({.logit_bias = {{0, -kInfinity}, {1, -kInfinity}}, .temperature = temperature}, 2);
    std::vector<float> logits = {1.0f, 2.0f};
    const auto token = sampler.Sample(logits, {});
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code(), ErrorCode::kUsage);
    EXPECT_NE(token.error().message().find("logit_bias"), std::string::npos);
  }
}

TEST(SamplerTest, ThePenaltyLooksBackAsFarAsAsked) {
  const std::vector<int32_t> history = {0, 1, 2};
  SamplerOptions options = {.repeat_penalty = 2.0f, .repeat_last_n = 2, .temperature = 0.0f};
  EXPECT_EQ(SampleOne(options, {4.0f, 5.0f, 5.0f}, history), 0);
  options.repeat_last_n = 3;
  EXPECT_EQ(SampleOne(options, {4.0f, 5.0f, 5.0f}, history), 1);
  options.repeat_last_n = 0;
  EXPECT_EQ(SampleOne(options, {4.0f, 5.0f, 5.0f}, history), 1);
  options.repeat_last_n = 1000;
  EXPECT_EQ(SampleOne(options, {4.0f, 6.0f, 5.0f}, history), 1);
}

TEST(SamplerTest, ThePenaltyMayLookBackAtTheWholeContext) {
  // More tokens than a word of bits has, most of them several times.
  std::vector<float> logits(200, 3.0f);
  std::vector<int32_t> history;
  for (int32_t i = 0; i < 1000; ++i) history.push_back(i % 199);
  Sampler sampler = Make(
      {.repeat_penalty = 2.0f, .repeat_last_n = SamplerOptions::kWholeContext, .temperature = 0.0f},
      logits.size());
  logits[7] = 5.9f;  // 2.95 with one penalty.
  logits[8] = 6.1f;  // 3.05.
  const std::vector<float> before = logits;
  EXPECT_EQ(sampler.Sample(logits, history).value_or(-1), 8);
  logits[8] = 3.0f;
  EXPECT_EQ(sampler.Sample(logits, history).value_or(-1), 199);
  // What was recent once is forgotten.
  EXPECT_EQ(sampler.Sample(logits, std::span(history).first(7)).value_or(-1), 7);
  logits[8] = 6.1f;
  EXPECT_EQ(logits, before);
}

TEST(SamplerTest, APenaltyBelowOneFavoursRepetition) {
  EXPECT_EQ(SampleOne({.repeat_penalty = 0.5f, .temperature = 0.0f}, {3.0f, 2.0f}, {1}), 1);
}

TEST(SamplerTest, TheSeedDecides) {
  std::vector<float> logits(50);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7);
  const auto draw = [&](uint64_t seed) {
    SamplerOptions options;
    options.seed = seed;
    Sampler sampler = Make(options, logits.size());
    std::vector<int32_t> tokens;
    for (int i = 0; i < 30; ++i) {
      std::vector<float> copy = logits;
      tokens.push_back(sampler.Sample(copy, {}).value_or(-1));
    }
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

TEST(SamplerTest, RandomNumbersAreThoseOfTheStandardsGenerator) {
  // The first number of std::mt19937_64 with seed 5489 is 14514284786278117030, 0.7868 of 2^64.
  SamplerOptions options = kNeutral;
  options.seed = 5489;
  EXPECT_EQ(SampleOne(options, LogitsOf({0.7f, 0.2f, 0.1f})), 1);
  EXPECT_EQ(SampleOne(options, LogitsOf({0.78f, 0.22f})), 1);
  EXPECT_EQ(SampleOne(options, LogitsOf({0.79f, 0.21f})), 0);
}

TEST(SamplerTest, OptionsOutsideTheirRangesAreRefusedByName) {
  const auto expect_refused = [](SamplerOptions options, const std::string& name) {
    const auto sampler = Sampler::Create(options, 10);
    ASSERT_FALSE(sampler) << name;
    EXPECT_EQ(sampler.error().code(), ErrorCode::kUsage);
    EXPECT_EQ(sampler.error().message().find(name), 0u) << sampler.error().message();
  };
  for (const float value : {-0.1f, 1.1f, kNaN, kInfinity}) {
    expect_refused({.typical_p = value}, "typical_p is ");
    expect_refused({.xtc_probability = value}, "xtc_probability is ");
    expect_refused({.xtc_threshold = value}, "xtc_threshold is ");
    expect_refused({.top_p = value}, "top_p is ");
    expect_refused({.min_p = value}, "min_p is ");
  }
  for (const float value : {-0.1f, kNaN, kInfinity}) {
    expect_refused({.temperature = value}, "temperature is ");
    expect_refused({.repeat_penalty = value}, "repeat_penalty is ");
  }
  expect_refused({.repeat_penalty = 0.0f}, "repeat_penalty is ");
  for (const float value : {1000.1f, -1000.1f, kNaN, kInfinity, -kInfinity}) {
    expect_refused({.presence_penalty = value}, "presence_penalty is ");
    expect_refused({.frequency_penalty = value}, "frequency_penalty is ");
  }
  for (const int32_t id : {-1, 10, INT32_MIN, INT32_MAX}) {
    expect_refused({.logit_bias = {{3, 1.0f}, {id, 1.0f}}},
                   "logit_bias has token " + std::to_string(id));
  }
  for (const float addend : {kNaN, kInfinity, 1.1e6f}) {
    expect_refused({.logit_bias = {{9, addend}}}, "logit_bias is ");
  }
  EXPECT_TRUE(Sampler::Create({}, 10));
  const SamplerOptions extremes = {.top_p = 0.0f, .min_p = 1.0f, .temperature = 0.0f};
  EXPECT_TRUE(Sampler::Create(extremes, 1));
}

}  // namespace
}  // namespace cria
