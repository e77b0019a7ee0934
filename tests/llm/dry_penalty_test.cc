// DRY: what is a repetition, where it may begin, and what it costs.

#include "llm/dry_penalty.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "llm/sampler.h"
#include "text/test_vocabulary.h"

namespace cria {
namespace {

constexpr size_t kDryContext = 64;

const Tokenizer& ByteTokens() {
  static const TestTokenizer tokenizer(ByteLevelDraft({"ab", "a:", "<|", "\n\n"}));
  return *tokenizer;
}

std::vector<int32_t> ByteIds(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

using Penalties = std::map<int32_t, float>;

Penalties FoundPenalties(DryPenalty& dry, std::span<const int32_t> context) {
  Penalties found;
  dry.ForEach(context, [&](int32_t token, float penalty) {
    EXPECT_TRUE(found.emplace(token, penalty).second) << "token " << token << " comes twice";
  });
  return found;
}

Penalties FoundPenalties(const DryOptions& options, std::string_view text) {
  auto dry = DryPenalty::Create(options, ByteTokens(), kDryContext);
  EXPECT_TRUE(dry) << dry.error().message();
  return FoundPenalties(*dry, ByteIds(text));
}

// For each earlier token, counts how many tokens before it are the newest ones.
Penalties ReferencePenalties(const DryOptions& options, std::span<const int32_t> context,
                             const DryBreakers& breakers) {
  const auto tokens = context.last(std::min({context.size(), options.last_n, kDryContext}));
  const size_t size = tokens.size();
  const size_t most = breakers.CountBehind(tokens);
  Penalties penalties;
  for (size_t at = 1; at < size; ++at) {
    size_t length = 0;
    while (length < at && length < most && tokens[at - 1 - length] == tokens[size - 1 - length]) {
      ++length;
    }
    if (length < options.allowed_length || breakers.IsBreaker(tokens[at])) continue;
    const float penalty = static_cast<float>(
        options.multiplier *
        std::pow(double{options.base}, static_cast<double>(length - options.allowed_length)));
    penalties[tokens[at]] = std::max(penalties[tokens[at]], penalty);
  }
  return penalties;
}

TEST(DryPenaltyTest, AnExampleByHand) {
  const DryOptions options = {.multiplier = 2.0f, .base = 3.0f};
  // "abc" was there before, and "c" came then. "bc" was followed by "y".
  EXPECT_EQ(FoundPenalties(options, "abccbcyabc"), (Penalties{{'c', 6.0f}, {'y', 2.0f}}));
  EXPECT_EQ(FoundPenalties(options, "abcd"), Penalties());
  EXPECT_EQ(FoundPenalties(options, "xyxy"), (Penalties{{'x', 2.0f}}));
  EXPECT_EQ(FoundPenalties(options, "xy"), Penalties());
  EXPECT_EQ(FoundPenalties(options, ""), Penalties());
  // Three of the same are a repetition of two.
  EXPECT_EQ(FoundPenalties(options, "aaa"), (Penalties{{'a', 2.0f}}));
  EXPECT_EQ(FoundPenalties(options, "aaaaaa"), (Penalties{{'a', 54.0f}}));
}

TEST(DryPenaltyTest, AgreesWithTheDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    DryOptions options = {.multiplier = 0.8f,
                          .base = round % 3 == 0 ? 1.0f : 1.5f,
                          .allowed_length = random() % 4,
                          .last_n = random() % 2 == 0 ? SIZE_MAX : 1 + random() % 80};
    options.sequence_breakers.emplace();
    if (round % 2 == 0) options.sequence_breakers->push_back("c");
    if (round % 5 == 0) options.sequence_breakers->push_back("abc");
    const auto breakers = DryBreakers::Create(ByteTokens(), *options.sequence_breakers);
    ASSERT_TRUE(breakers);
    auto dry = DryPenalty::Create(options, ByteTokens(), kDryContext);
    ASSERT_TRUE(dry);
    // One object serves texts of all lengths, some of them longer than the context.
    for (int i = 0; i < 20; ++i) {
      std::vector<int32_t> context(random() % 100);
      const uint32_t letters = 1 + random() % 3;
      for (int32_t& id : context) id = static_cast<int32_t>('a' + random() % letters);
      EXPECT_EQ(FoundPenalties(*dry, context), ReferencePenalties(options, context, *breakers))
          << round;
    }
  }
}

TEST(DryPenaltyTest, NothingRepeatsAcrossABreaker) {
  const DryOptions options = {.multiplier = 1.0f, .base = 2.0f};
  EXPECT_EQ(FoundPenalties(options, "abcd:abc"), (Penalties{{'d', 2.0f}}));
  // Only the tokens behind the newest breaker count.
  EXPECT_EQ(FoundPenalties(options, "x:abcd.x:abc"), (Penalties{{'d', 2.0f}}));
  EXPECT_EQ(FoundPenalties(options, "xyz:ab.xyz:"), Penalties());
  // A breaker itself is never penalized.
  EXPECT_EQ(FoundPenalties(options, "abc: abc"), Penalties());
  // A token that only contains a breaker is one as well: 257 is "a:", 259 is "\n\n".
  const DryBreakers breakers = *DryBreakers::Create(ByteTokens(), DefaultDryBreakers());
  EXPECT_TRUE(breakers.IsBreaker(257));
  EXPECT_TRUE(breakers.IsBreaker('\n'));
  EXPECT_TRUE(breakers.IsBreaker(259));
  EXPECT_FALSE(breakers.IsBreaker('a'));
  // There may be no breakers at all.
  DryOptions without = options;
  without.sequence_breakers.emplace();
  EXPECT_EQ(FoundPenalties(without, "x:abcd.x:abc"), (Penalties{{'d', 8.0f}}));
}

TEST(DryPenaltyTest, BreakersMayBeSeveralTokens) {
  const std::vector<std::string> texts = {"<|end|>"};
  const DryBreakers breakers = *DryBreakers::Create(ByteTokens(), texts);
  const auto count = [&](std::vector<int32_t> tokens) { return breakers.CountBehind(tokens); };
  EXPECT_FALSE(breakers.IsBreaker('<'));
  EXPECT_EQ(count(ByteIds("abc")), 3u);
  // The rest is encoded as a text is: '<' and "|end|>", or "<|" (258) and "end|>".
  std::vector<int32_t> tokens = ByteIds("xy");
  tokens.push_back(258);
  for (const int32_t id : ByteIds("end|>")) tokens.push_back(id);
  EXPECT_EQ(count(tokens), 0u);
  for (const int32_t id : ByteIds("abcd")) tokens.push_back(id);
  EXPECT_EQ(count(tokens), 4u);
  EXPECT_EQ(count(ByteIds("x<|end|>ab")), 2u);
  EXPECT_EQ(count(ByteIds("x<|end|ab")), 9u);
}

TEST(DryPenaltyTest, PenaltiesStayFinite) {
  const DryOptions options = {.multiplier = 1000.0f, .base = 1000.0f};
  const Penalties found = FoundPenalties(options, std::string(kDryContext, 'a'));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(std::isfinite(found.at('a')));
  EXPECT_GE(found.at('a'), 1e29f);
}

TEST(DryPenaltyTest, TextsBeyondTheBoundsAreRefused) {
  const auto refused = [](const std::vector<std::string>& texts) {
    const auto breakers = DryBreakers::Create(ByteTokens(), texts);
    return !breakers && breakers.error().code() == ErrorCode::kUsage &&
           breakers.error().message().starts_with("dry_sequence_breakers");
  };
  EXPECT_TRUE(refused({""}));
  EXPECT_TRUE(refused({std::string(41, 'a')}));
  EXPECT_TRUE(refused(std::vector<std::string>(17, "a")));
  EXPECT_FALSE(refused(std::vector<std::string>(16, std::string(40, 'a'))));
}

TEST(DryPenaltyTest, TheSamplerSubtractsThem) {
  SamplerOptions options = {.temperature = 0.0f};
  options.dry = {.multiplier = 2.0f, .base = 3.0f};
  const size_t vocab_size = ByteTokens().vocab_size();
  auto sampler = Sampler::Create(options, vocab_size, &ByteTokens(), kDryContext);
  ASSERT_TRUE(sampler) << sampler.error().message();
  std::vector<float> logits(vocab_size, 0.0f);
  logits['c'] = 9.0f;
  logits['z'] = 3.1f;
  const std::vector<float> before = logits;
  EXPECT_EQ(sampler->Sample(logits, ByteIds("abccbcyabc")).value_or(-1), 'z');
  EXPECT_EQ(sampler->Sample(logits, ByteIds("abcd")).value_or(-1), 'c');
  logits['z'] = 2.9f;
  EXPECT_EQ(sampler->Sample(logits, ByteIds("abccbcyabc")).value_or(-1), 'c');
  logits['z'] = 3.1f;
  EXPECT_EQ(logits, before);

  EXPECT_EQ(Sampler::Create(options, vocab_size).error().code(), ErrorCode::kUsage);
  const auto expect_refused = [&](const DryOptions& dry, const std::string& name) {
    const auto refused = Sampler::Create({.dry = dry}, vocab_size, &ByteTokens(), kDryContext);
    ASSERT_FALSE(refused) << name;
    EXPECT_TRUE(refused.error().message().starts_with(name)) << refused.error().message();
  };
  expect_refused({.multiplier = -1.0f}, "dry_multiplier is ");
  expect_refused({.multiplier = NAN}, "dry_multiplier is ");
  expect_refused({.base = 0.9f}, "dry_base is ");
  expect_refused({.multiplier = 1.0f, .sequence_breakers = {{""}}}, "dry_sequence_breakers ");
}

}  // namespace
}  // namespace cria
