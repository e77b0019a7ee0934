// Choosing among the tokens of a mask, against a naive reference: the same sampler without a mask,
// for which the logits of all other tokens are minus infinity.

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "llm/sampler.h"

namespace cria {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

Sampler MakeFor(const SamplerOptions& options, size_t vocab_size) {
  auto sampler = Sampler::Create(options, vocab_size);
  EXPECT_TRUE(sampler) << sampler.error().message();
  return std::move(*sampler);
}

// Bits behind the vocabulary are set, too; they must not matter.
std::vector<uint64_t> WordsOf(const std::set<int32_t>& ids, size_t vocab_size) {
  std::vector<uint64_t> words((vocab_size + 63) / 64);
  for (size_t id = 0; id < words.size() * 64; ++id) {
    if (id < vocab_size && !ids.contains(static_cast<int32_t>(id))) continue;
    words[id / 64] |= uint64_t{1} << (id % 64);
  }
  return words;
}

// What may be chosen, one id at a time.
bool MayBeChosen(const TokenMask& mask, const std::set<int32_t>& ids, int32_t id) {
  return std::ranges::contains(mask.ends, id) ? mask.may_end : ids.contains(id);
}

std::vector<SamplerOptions> ManyOptions() {
  return {{.temperature = 0.0f},
          {.repeat_penalty = 1.5f, .temperature = 0.0f},
          {},
          {.logit_bias = {{3, 2.0f}, {70, -1.0f}, {5, kNever}}, .repeat_penalty = 1.2f},
          {.top_k = 3, .top_p = 1.0f, .min_p = 0.0f, .temperature = 2.0f},
          {.top_k = 0, .top_p = 1.0f, .min_p = 0.0f, .temperature = 1.5f},
          {.top_k = 0, .top_p = 0.7f, .min_p = 0.1f, .temperature = 1.0f}};
}

TEST(MaskedSampler, ChoosesAsIfTheOthersWereImpossible) {
  std::mt19937 random(3);
  const std::vector<int32_t> history = {1, 5, 70, 5, 100};
  for (const size_t vocab_size : {1u, 63u, 64u, 65u, 130u}) {
    std::vector<float> logits(vocab_size);
    for (SamplerOptions options : ManyOptions()) {
      std::erase_if(options.logit_bias, [&](const LogitBias& bias) {
        return static_cast<size_t>(bias.token_id) >= vocab_size;
      });
      std::vector<int32_t> past = history;
      std::erase_if(past, [&](int32_t id) { return static_cast<size_t>(id) >= vocab_size; });
      Sampler masked = MakeFor(options, vocab_size);
      Sampler reference = MakeFor(options, vocab_size);
      for (int round = 0; round < 60; ++round) {
        for (float& logit : logits) logit = static_cast<float>(random() % 64) / 8.0f - 4.0f;
        std::set<int32_t> ids;
        for (size_t id = 0; id < vocab_size; ++id) {
          if (random() % (round % 2 == 0 ? 2 : 10) == 0) ids.insert(static_cast<int32_t>(id));
        }
        const std::vector<uint64_t> words = WordsOf(ids, vocab_size);
        // One of them is outside the vocabulary, one is in the mask's bits.
        std::vector<int32_t> ends = {-1, 200, 0, 62};
        const TokenMask mask = {words, ends, round % 3 == 0};
        std::vector<float> changed = logits;
        for (size_t id = 0; id < vocab_size; ++id) {
          if (!MayBeChosen(mask, ids, static_cast<int32_t>(id))) changed[id] = kNever;
        }
        const std::vector<float> before = logits;
        const auto token = masked.Sample(logits, past, &mask);
        const auto expected = reference.Sample(changed, past);
        EXPECT_EQ(logits, before);
        ASSERT_EQ(token.has_value(), expected.has_value()) << vocab_size << ", " << round;
        if (!token) {
          EXPECT_EQ(token.error().code(), ErrorCode::kUsage);
          continue;
        }
        ASSERT_EQ(*token, *expected) << vocab_size << ", " << round;
        EXPECT_TRUE(MayBeChosen(mask, ids, *token));
      }
    }
  }
}

TEST(MaskedSampler, TopKCountsWhatMayBeChosen) {
  std::vector<float> logits = {5.0f, 4.0f, 3.0f, 2.0f, 1.0f};
  const std::vector<uint64_t> words = WordsOf({2, 3, 4}, logits.size());
  const TokenMask mask = {words, {}, false};
  Sampler sampler =
      MakeFor({.top_k = 2, .top_p = 1.0f, .min_p = 0.0f, .temperature = 10.0f}, logits.size());
  std::set<int32_t> chosen;
  for (int i = 0; i < 200; ++i) chosen.insert(sampler.Sample(logits, {}, &mask).value_or(-1));
  EXPECT_EQ(chosen, (std::set<int32_t>{2, 3}));
}

TEST(MaskedSampler, TokensThatEndTheTextNeedItsConsent) {
  std::vector<float> logits = {0.0f, 9.0f, 1.0f};
  Sampler sampler = MakeFor({.temperature = 0.0f}, logits.size());
  const std::vector<int32_t> ends = {1};
  for (const auto& bits : {std::set<int32_t>{0}, std::set<int32_t>{0, 1}}) {
    const std::vector<uint64_t> words = WordsOf(bits, logits.size());
    const TokenMask open = {words, ends, false};
    const TokenMask complete = {words, ends, true};
    EXPECT_EQ(sampler.Sample(logits, {}, &open).value_or(-1), 0);
    EXPECT_EQ(sampler.Sample(logits, {}, &complete).value_or(-1), 1);
  }
}

TEST(MaskedSampler, NothingToChooseFromIsAnErrorThatNamesTheCause) {
  for (const float temperature : {0.0f, 1.0f}) {
    std::vector<float> logits = {1.0f, kNever, 2.0f};
    const auto message = [&](const SamplerOptions& options, const std::set<int32_t>& ids) {
      const std::vector<uint64_t> words = WordsOf(ids, logits.size());
      const TokenMask mask = {words, {}, false};
      const auto token = MakeFor(options, logits.size()).Sample(logits, {}, &mask);
      EXPECT_FALSE(token);
      return token ? std::string() : std::string(token.error().message());
    };
    EXPECT_NE(message({.temperature = temperature}, {}).find("constraint"), std::string::npos);
    EXPECT_NE(message({.temperature = temperature}, {1}).find("constraint"), std::string::npos);
    EXPECT_NE(message({.logit_bias = {{0, kNever}}, .temperature = temperature}, {0})
                  .find("logit_bias forbids"),
              std::string::npos);
  }
}

TEST(MaskedSampler, PeekingSeesWhatIsChosenLater) {
  const size_t vocab_size = 70;
  std::mt19937 random(4);
  std::vector<float> logits(vocab_size);
  for (float& logit : logits) logit = static_cast<float>(random() % 100) / 50.0f;
  const std::vector<uint64_t> words = WordsOf({1, 2, 3, 40, 64, 69}, vocab_size);
  const TokenMask mask = {words, {}, false};
  Sampler sampler = MakeFor({.temperature = 3.0f, .seed = 5}, vocab_size);
  std::vector<int32_t> peeked;
  for (size_t ahead = 0; ahead < 8; ++ahead) {
    peeked.push_back(sampler.Peek(logits, {}, ahead, &mask).value_or(-1));
  }
  std::vector<int32_t> chosen;
  for (size_t i = 0; i < 8; ++i) chosen.push_back(sampler.Sample(logits, {}, &mask).value_or(-1));
  EXPECT_EQ(peeked, chosen);
}

}  // namespace
}  // namespace cria
