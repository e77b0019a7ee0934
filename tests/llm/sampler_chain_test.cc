// All steps of the sampler against llama.cpp's definitions of them, written down as they are.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "llm/sampler.h"

namespace cria {
namespace {

// Every other step is neutral.
constexpr SamplerOptions kOnlyTemperature = {
    .top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .temperature = 1.0f};

struct Choice {
  int32_t id;
  double logit;
  double probability;
};

void NormalizeChoices(std::vector<Choice>& choices, double temperature = 1.0) {
  double largest = -1e300;
  for (const Choice& choice : choices) largest = std::max(largest, choice.logit);
  double sum = 0.0;
  for (Choice& choice : choices) {
    choice.probability = std::exp((choice.logit - largest) / temperature);
    sum += choice.probability;
  }
  for (Choice& choice : choices) choice.probability /= sum;
}

void SortChoices(std::vector<Choice>& choices) {
  std::ranges::stable_sort(choices, std::ranges::greater{}, &Choice::logit);
}

// Keeps the first choices until `is_enough` holds for the sum of their probabilities.
template <typename IsEnough>
void KeepUntil(std::vector<Choice>& choices, const IsEnough& is_enough) {
  double sum = 0.0;
  size_t kept = 0;
  while (kept < choices.size() && (kept == 0 || !is_enough(sum))) {
    sum += choices[kept++].probability;
  }
  choices.resize(kept);
}

void KeepTypical(std::vector<Choice>& choices, double p) {
  NormalizeChoices(choices);
  double entropy = 0.0;
  for (const Choice& choice : choices) {
    entropy -= choice.probability * std::log(choice.probability);
  }
  std::ranges::stable_sort(choices, std::ranges::less{}, [entropy](const Choice& choice) {
    return std::abs(-std::log(choice.probability) - entropy);
  });
  KeepUntil(choices, [p](double sum) { return sum > p; });
  SortChoices(choices);
}

void ExcludeTop(std::vector<Choice>& choices, double threshold) {
  NormalizeChoices(choices);
  const auto is_top = [&](const Choice& choice) { return choice.probability >= threshold; };
  const auto num_top = std::ranges::count_if(choices, is_top);
  if (num_top > 1) choices.erase(choices.begin(), choices.begin() + (num_top - 1));
}

// The id that llama.cpp's steps choose; xtc_probability must be 0 or 1.
int32_t Chosen(const SamplerOptions& options, std::span<const float> logits,
               std::span<const int32_t> history, uint64_t random) {
  std::vector<Choice> choices;
  for (size_t id = 0; id < logits.size(); ++id) {
    choices.push_back({static_cast<int32_t>(id), logits[id], 0.0});
  }
  std::map<int32_t, int> counts;
  for (const int32_t id : history.last(std::min(history.size(), options.repeat_last_n))) {
    ++counts[id];
  }
  for (const auto& [id, count] : counts) {
    double& logit = choices[static_cast<size_t>(id)].logit;
    logit = logit > 0.0 ? logit / options.repeat_penalty : logit * options.repeat_penalty;
    logit -= count * options.frequency_penalty + options.presence_penalty;
  }
  SortChoices(choices);
  if (options.top_k != 0) choices.resize(std::min(choices.size(), options.top_k));
  if (options.typical_p < 1.0f) KeepTypical(choices, options.typical_p);
  NormalizeChoices(choices);
  if (options.top_p < 1.0f) {
    KeepUntil(choices, [&](double sum) { return sum >= options.top_p; });
  }
  NormalizeChoices(choices);
  const double most_likely = choices[0].probability;
  std::erase_if(choices, [&](const Choice& choice) {
    return choice.probability < options.min_p * most_likely;
  });
  if (options.xtc_probability == 1.0f) ExcludeTop(choices, options.xtc_threshold);
  if (options.temperature == 0.0f) return choices[0].id;
  NormalizeChoices(choices, options.temperature);
  double target = static_cast<double>(random >> 11) * 0x1p-53;
  for (const Choice& choice : choices) {
    target -= choice.probability;
    if (target < 0.0) return choice.id;
  }
  return choices.back().id;
}

TEST(SamplerChainTest, EveryStepIsThatOfLlamaCpp) {
  std::mt19937_64 random(17);
  const auto one_of = [&](std::initializer_list<float> values) {
    return values.begin()[random() % values.size()];
  };
  for (int round = 0; round < 400; ++round) {
    const SamplerOptions options = {
        .repeat_penalty = one_of({1.0f, 1.25f, 0.5f}),
        .presence_penalty = one_of({0.0f, 0.75f, -0.5f}),
        .frequency_penalty = one_of({0.0f, 0.25f, -0.125f}),
        .repeat_last_n = random() % 2 == 0 ? 8 : SamplerOptions::kWholeContext,
        .top_k = static_cast<size_t>(one_of({0, 1, 7, 30})),
        .typical_p = one_of({1.0f, 0.9f, 0.5f, 0.0f}),
        .top_p = one_of({1.0f, 0.9f, 0.5f}),
        .min_p = one_of({0.0f, 0.05f, 0.3f}),
        .xtc_probability = one_of({0.0f, 1.0f}),
        .xtc_threshold = one_of({0.05f, 0.1f, 0.3f, 0.6f}),
        .temperature = one_of({0.0f, 0.7f, 1.0f, 2.0f}),
        .seed = random()};
    SCOPED_TRACE("round " + std::to_string(round));
    auto sampler = Sampler::Create(options, 50);
    ASSERT_TRUE(sampler) << sampler.error().message();
    std::mt19937_64 numbers(options.seed);
    for (int i = 0; i < 20; ++i) {
      std::vector<float> logits(50);
      // No two are equal, so that their order is certain after the penalties, too.
      for (float& logit : logits) logit = static_cast<float>(random() % 100000) / 16384.0f - 3.0f;
      std::vector<int32_t> history(random() % 30);
      for (int32_t& id : history) id = static_cast<int32_t>(random() % 12);
      const std::vector<float> before = logits;
      const auto token = sampler->Sample(logits, history);
      ASSERT_TRUE(token) << token.error().message();
      // Greedy choices take no random number.
      const uint64_t number = options.is_greedy() ? 0 : numbers();
      EXPECT_EQ(*token, Chosen(options, logits, history, number)) << i;
      EXPECT_EQ(logits, before);
    }
  }
}

int32_t ChosenOf(const SamplerOptions& options, std::vector<float> logits,
                 const std::vector<int32_t>& history = {}) {
  auto sampler = Sampler::Create(options, logits.size());
  EXPECT_TRUE(sampler) << sampler.error().message();
  return sampler->Sample(logits, history).value_or(-1);
}

TEST(SamplerChainTest, PresenceCountsOnceAndFrequencyEachTime) {
  const std::vector<int32_t> history = {0, 0, 0, 1};
  EXPECT_EQ(ChosenOf({.presence_penalty = 1.0f, .temperature = 0.0f}, {4.0f, 2.9f, 2.8f}, history),
            0);
  EXPECT_EQ(ChosenOf({.presence_penalty = 1.0f, .temperature = 0.0f}, {4.0f, 2.9f, 3.1f}, history),
            2);
  // 4 - 3 * 0.5 and 2.9 - 0.5.
  EXPECT_EQ(ChosenOf({.frequency_penalty = 0.5f, .temperature = 0.0f}, {4.0f, 2.9f, 2.4f}, history),
            0);
  EXPECT_EQ(ChosenOf({.frequency_penalty = 0.5f, .temperature = 0.0f}, {4.0f, 3.1f, 2.4f}, history),
            1);
  // Negative ones make recent tokens more likely.
  EXPECT_EQ(ChosenOf({.presence_penalty = -2.0f, .temperature = 0.0f}, {1.0f, 2.0f, 3.0f}, {1}), 1);
  EXPECT_EQ(ChosenOf({.frequency_penalty = -2.0f, .temperature = 0.0f}, {1.0f, 2.0f, 3.0f}, {1}),
            1);
}

std::set<int32_t> Drawn(SamplerOptions options, const std::vector<float>& probabilities) {
  std::vector<float> logits;
  for (const float probability : probabilities) logits.push_back(std::log(probability));
  auto sampler = Sampler::Create(options, logits.size());
  EXPECT_TRUE(sampler);
  std::set<int32_t> ids;
  for (int i = 0; i < 2000; ++i) ids.insert(sampler->Sample(logits, {}).value_or(-1));
  return ids;
}

TEST(SamplerChainTest, TypicalTokensMayBeOtherThanTheMostLikely) {
  SamplerOptions options = kOnlyTemperature;
  // The entropy is 1.83 nats, nearest to the information of 0.1 (2.30) and then of 0.5 (0.69).
  const std::vector<float> probabilities = {0.5f, 0.1f, 0.1f, 0.1f, 0.1f, 0.05f, 0.05f};
  options.typical_p = 0.35f;
  EXPECT_EQ(Drawn(options, probabilities), (std::set<int32_t>{1, 2, 3, 4}));
  options.typical_p = 0.6f;
  EXPECT_EQ(Drawn(options, probabilities), (std::set<int32_t>{0, 1, 2, 3, 4}));
  options.typical_p = 1.0f;
  EXPECT_EQ(Drawn(options, probabilities).size(), probabilities.size());
  // At temperature 0, the most likely of those that are left.
  options.typical_p = 0.35f;
  options.temperature = 0.0f;
  EXPECT_EQ(Drawn(options, probabilities), (std::set<int32_t>{1}));
  // Tokens without any probability have no part in the entropy.
  options.typical_p = 0.5f;
  EXPECT_EQ(Drawn(options, {0.0f, 0.5f, 0.5f}), (std::set<int32_t>{1}));
}

TEST(SamplerChainTest, XtcKeepsTheLeastLikelyOfTheTopAndAllBelow) {
  SamplerOptions options = kOnlyTemperature;
  options.xtc_probability = 1.0f;
  const std::vector<float> probabilities = {0.1f, 0.4f, 0.3f, 0.15f, 0.05f};
  options.xtc_threshold = 0.2f;
  EXPECT_EQ(Drawn(options, probabilities), (std::set<int32_t>{0, 2, 3, 4}));
  options.xtc_threshold = 0.12f;
  EXPECT_EQ(Drawn(options, probabilities), (std::set<int32_t>{0, 3, 4}));
  options.xtc_threshold = 0.0f;
  EXPECT_EQ(Drawn(options, probabilities), (std::set<int32_t>{4}));
  // If only one token reaches the threshold, it is not excluded.
  options.xtc_threshold = 0.35f;
  EXPECT_EQ(Drawn(options, probabilities).size(), 5u);
  options.xtc_threshold = 0.9f;
  EXPECT_EQ(Drawn(options, {0.95f, 0.05f}).size(), 2u);
}

TEST(SamplerChainTest, XtcExcludesAsOftenAsAsked) {
  constexpr int kDraws = 20000;
  SamplerOptions options = kOnlyTemperature;
  options.xtc_probability = 0.25f;
  options.xtc_threshold = 0.2f;
  options.seed = 3;
  auto sampler = Sampler::Create(options, 3);
  ASSERT_TRUE(sampler);
  std::vector<float> logits = {std::log(0.6f), std::log(0.3f), std::log(0.1f)};
  std::vector<int> counts(3);
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<size_t>(sampler->Sample(logits, {}).value_or(0))];
  }
  // The exclusion does not depend on which token is drawn: with it, the others have 3/4 and 1/4.
  const std::vector<double> expected = {0.75 * 0.6, 0.75 * 0.3 + 0.25 * 0.75,
                                        0.75 * 0.1 + 0.25 * 0.25};
  for (size_t id = 0; id < 3; ++id) {
    EXPECT_NEAR(counts[id], expected[id] * kDraws, 4 * std::sqrt(kDraws / 4.0)) << id;
  }
}

TEST(SamplerChainTest, XtcIsTheSameWhenItIsSeenAhead) {
  SamplerOptions options = kOnlyTemperature;
  options.xtc_probability = 0.5f;
  options.seed = 9;
  auto sampler = Sampler::Create(options, 5);
  ASSERT_TRUE(sampler);
  std::vector<float> logits = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f};
  std::vector<int32_t> ahead;
  for (size_t i = 0; i < 20; ++i) ahead.push_back(sampler->Peek(logits, {}, i).value_or(-1));
  for (const int32_t token : ahead) EXPECT_EQ(sampler->Sample(logits, {}).value_or(-2), token);
}

}  // namespace
}  // namespace cria
