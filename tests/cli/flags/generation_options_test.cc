#include "cli/flags/generation_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace cria::cli {
namespace {

using testing::ElementsAre;

// A program with all options of generating.
class GenerationOptionsTest : public testing::Test {
 protected:
  GenerationOptionsTest() {
    AddPredictOption(program_, max_tokens_, "Maximum");
    AddSamplerOptions(program_, sampler_);
    AddTextOptions(program_, text_, "-p");
    program_.SetAction([]() -> Status { return {}; });
  }

  Status Run(const std::vector<std::string>& arguments) { return program_.Run(arguments); }
  void ExpectError(const std::vector<std::string>& arguments, const std::string& sentence) {
    const Status status = Run(arguments);
    ASSERT_FALSE(status) << sentence;
    EXPECT_EQ(status.error().code(), ErrorCode::kUsage);
    EXPECT_EQ(status.error().message(), sentence + "; see program --help");
  }

  CommandLine program_{"program", "Does things."};
  size_t max_tokens_ = 7;
  SamplerOptions sampler_;
  TextOptions text_;
};

TEST_F(GenerationOptionsTest, PredictsUntilTheModelStops) {
  for (const char* unlimited : {"-1", "0"}) {
    max_tokens_ = 7;
    ASSERT_TRUE(Run({"-n", unlimited}));
    EXPECT_EQ(max_tokens_, 0);
  }
  ASSERT_TRUE(Run({"-n", "12"}));
  EXPECT_EQ(max_tokens_, 12);
  for (const char* wrong : {"-2", "1.5", "", "99999999999999999999"}) {
    ExpectError({"-n", wrong},
                "--predict: \"" + std::string(wrong) + "\" is not a whole number of -1 or more");
  }
}

TEST_F(GenerationOptionsTest, RecentTokensMayBeTheWholeContext) {
  EXPECT_EQ(LastNText(sampler_.repeat_last_n), "64");
  ASSERT_TRUE(Run({"--repeat-last-n", "-1"}));
  EXPECT_EQ(sampler_.repeat_last_n, SamplerOptions::kWholeContext);
  EXPECT_EQ(LastNText(sampler_.repeat_last_n), "-1");
  for (const char* const count : {"0", "300"}) {
    ASSERT_TRUE(Run({"--repeat-last-n", count}));
    EXPECT_EQ(LastNText(sampler_.repeat_last_n), count);
  }
  for (const char* wrong : {"-2", "1.5", "", "all", "99999999999999999999"}) {
    ExpectError({"--repeat-last-n", wrong}, "--repeat-last-n: \"" + std::string(wrong) +
                                                "\" is not a whole number of -1 or more");
  }
}

TEST_F(GenerationOptionsTest, RepetitionsEndAtTextsThatReplaceTheDefaults) {
  EXPECT_FALSE(sampler_.dry.sequence_breakers);
  ASSERT_TRUE(Run({"--dry-multiplier", "0.8", "--dry-base", "2", "--dry-allowed-length", "3",
                   "--dry-penalty-last-n", "100", "--dry-sequence-breaker", "\\n",
                   "--dry-sequence-breaker", "end"}));
  EXPECT_EQ(sampler_.dry.multiplier, 0.8f);
  EXPECT_EQ(sampler_.dry.base, 2.0f);
  EXPECT_EQ(sampler_.dry.allowed_length, 3u);
  EXPECT_EQ(sampler_.dry.last_n, 100u);
  ASSERT_TRUE(sampler_.dry.sequence_breakers);
  EXPECT_THAT(*sampler_.dry.sequence_breakers, ElementsAre("\n", "end"));
  ASSERT_TRUE(Run({"--dry-sequence-breaker", "none"}));
  ASSERT_TRUE(sampler_.dry.sequence_breakers);
  EXPECT_THAT(*sampler_.dry.sequence_breakers, ElementsAre());
}

TEST_F(GenerationOptionsTest, PenaltiesMayBeNegative) {
  ASSERT_TRUE(Run({"--presence-penalty", "-0.5", "--frequency-penalty", "1.5", "--typical", "0.9",
                   "--xtc-probability", "0.5", "--xtc-threshold", "0.2"}));
  EXPECT_EQ(sampler_.presence_penalty, -0.5f);
  EXPECT_EQ(sampler_.frequency_penalty, 1.5f);
  EXPECT_EQ(sampler_.typical_p, 0.9f);
  EXPECT_EQ(sampler_.xtc_probability, 0.5f);
  EXPECT_EQ(sampler_.xtc_threshold, 0.2f);
}

TEST_F(GenerationOptionsTest, TheSeedIsRandomUnlessItIsGiven) {
  // Two random seeds are the same once in four thousand million times.
  CommandLine other("other", "");
  SamplerOptions others;
  AddSamplerOptions(other, others);
  EXPECT_NE(sampler_.seed, others.seed);
  const uint64_t random = sampler_.seed;
  ASSERT_TRUE(Run({"-s", "-1"}));
  EXPECT_NE(sampler_.seed, random);
  ASSERT_TRUE(Run({"--seed", "18446744073709551615"}));
  EXPECT_EQ(sampler_.seed, std::numeric_limits<uint64_t>::max());
  ExpectError({"-s", "-2"}, "--seed: \"-2\" is not a whole number of -1 or more");
}

TEST_F(GenerationOptionsTest, BiasesOfLogitsHaveAnIdAndASign) {
  ASSERT_TRUE(Run({"--logit-bias", "15043+1.5", "--logit-bias", "7-inf", "--logit-bias=0-0.25"}));
  ASSERT_EQ(sampler_.logit_bias.size(), 3);
  EXPECT_EQ(sampler_.logit_bias[0].token_id, 15043);
  EXPECT_EQ(sampler_.logit_bias[0].addend, 1.5f);
  EXPECT_EQ(sampler_.logit_bias[1].token_id, 7);
  EXPECT_EQ(sampler_.logit_bias[1].addend, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(sampler_.logit_bias[2].addend, -0.25f);
  for (const char* wrong : {"", "5", "+1", "-5-1", "5=1", "5+", "5+a", "5+1x", "5--1", "5++1",
                            "99999999999+1", "5+1e99"}) {
    ExpectError({"--logit-bias", wrong},
                "--logit-bias: \"" + std::string(wrong) +
                    "\" is not a token id and a bias, such as 15043+1.5 or 15043-inf");
  }
}

TEST_F(GenerationOptionsTest, EscapesAreReadIfTheyAreWanted) {
  ASSERT_TRUE(Run({"--stop", "a\\n", "--stop", "b"}));
  EXPECT_THAT(text_.stop_strings, ElementsAre("a\\n", "b"));
  EXPECT_EQ(text_.Read("\\n"), "\\n");
  text_.stop_strings = {"\\n"};
  EXPECT_EQ(text_.MakeStopStrings()->longest_bytes(), 2);
  ASSERT_TRUE(Run({"-e"}));
  EXPECT_EQ(text_.Read("\\n"), "\n");
  EXPECT_EQ(text_.MakeStopStrings()->longest_bytes(), 1);
  text_.stop_strings = {""};
  EXPECT_EQ(text_.MakeStopStrings().error().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace cria::cli
