#include "text/split_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "text/test_vocabulary.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> Split(std::initializer_list<std::string_view> patterns,
                               std::string_view text) {
  const std::vector<std::string_view> list(patterns);
  auto compiled = SplitPatterns::Compile(list);
  if (!compiled) {
    ADD_FAILURE() << compiled.error().message();
    return {};
  }
  std::vector<std::string> words;
  const Status split = compiled->Split(text, [&](std::string_view word) -> Status {
    EXPECT_TRUE(word.data() >= text.data() &&
                word.data() + word.size() <= text.data() + text.size());
    words.emplace_back(word);
    return {};
  });
  if (!split) ADD_FAILURE() << split.error().message();
  return words;
}

TEST(SplitPatternsTest, KeepsMatchesAndGaps) {
  EXPECT_THAT(Split({R"(\d)"}, "ab12c"), ElementsAre("ab", "1", "2", "c"));
  EXPECT_THAT(Split({R"(\d)"}, "12"), ElementsAre("1", "2"));
  EXPECT_THAT(Split({R"(\d)"}, "ab"), ElementsAre("ab"));
  EXPECT_THAT(Split({R"(\d)"}, ""), ElementsAre());
  EXPECT_THAT(Split({}, "a b"), ElementsAre("a b"));
}

TEST(SplitPatternsTest, LaterPatternsSplitWhatEarlierOnesLeft) {
  EXPECT_THAT(Split({R"(\d)", R"([a-z])"}, "ab12C"), ElementsAre("a", "b", "1", "2", "C"));
  // The second pattern cannot see across the cuts of the first.
  EXPECT_THAT(Split({"b", "ab|bc|c"}, "abc"), ElementsAre("a", "b", "c"));
}

TEST(SplitPatternsTest, KnowsUnicode) {
  EXPECT_THAT(Split({R"( ?\p{L}+| ?\p{N}+)"}, "日本 語٣é"), ElementsAre("日本", " 語", "٣", "é"));
  EXPECT_THAT(Split({R"((?i:'S))"}, "It's"), ElementsAre("It", "'s"));
}

TEST(SplitPatternsTest, PassesOverEmptyMatches) {
  EXPECT_THAT(Split({"x*"}, "axxbé"), ElementsAre("a", "xx", "bé"));
  EXPECT_THAT(Split({"(?=b)"}, "ab"), ElementsAre("ab"));
  EXPECT_THAT(Split({R"(a\Kb)"}, "abab"), ElementsAre("a", "b", "a", "b"));
}

TEST(SplitPatternsTest, InvalidUtf8IsAWordOfItsOwn) {
  EXPECT_THAT(Split({R"(\p{L}+|.)"},
                    "ab\xFF\xFE"
                    "cd\xC3"),
              ElementsAre("ab", "\xFF\xFE", "cd", "\xC3"));
  EXPECT_THAT(Split({R"(\p{L}+)"}, "\xE2\x82"), ElementsAre("\xE2\x82"));
}

TEST(SplitPatternsTest, WordsAreTheWholeText) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const std::string text = RandomText(random, true);
    std::string joined;
    for (const std::string& word : Split({R"(\p{N}{1,3})", R"( ?\p{L}+|\s+(?!\S)|\s+)"}, text)) {
      EXPECT_FALSE(word.empty());
      joined += word;
    }
    EXPECT_EQ(joined, text);
  }
}

TEST(SplitPatternsTest, RefusesWrongPatterns) {
  for (const std::string_view pattern : {"(", "a{2,1}", R"(\C)", "[z-a]", R"(\p{Nonsense})"}) {
    const auto compiled = SplitPatterns::Compile({&pattern, 1});
    ASSERT_FALSE(compiled) << pattern;
    EXPECT_EQ(compiled.error().code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(compiled.error().message(), HasSubstr(pattern));
  }
  const std::vector<std::string_view> many(65, "a");
  EXPECT_FALSE(SplitPatterns::Compile(many));
  const std::string long_pattern(100'000, 'a');
  const std::string_view view = long_pattern;
  EXPECT_FALSE(SplitPatterns::Compile({&view, 1}));
}

TEST(SplitPatternsTest, APatternThatTakesForeverEndsWithAnError) {
  const std::string_view pattern = "(a+)+$";
  const auto compiled = SplitPatterns::Compile({&pattern, 1});
  ASSERT_TRUE(compiled);
  const auto status =
      compiled->Split(std::string(100, 'a') + "!", [](std::string_view) { return Status(); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kOutOfRange);
}

TEST(SplitPatternsTest, EndsWithTheFirstErrorOfTheCallback) {
  const std::vector<std::string_view> patterns = {R"(\d)", "[a-z]"};
  const auto compiled = SplitPatterns::Compile(patterns);
  ASSERT_TRUE(compiled);
  for (const std::string_view text : {"ab1cd", "1", "\xFF\xFE", "ab\xFF"}) {
    for (size_t fails_at = 1; fails_at <= 2; ++fails_at) {
      size_t num_words = 0;
      const Status status = compiled->Split(text, [&](std::string_view) -> Status {
        if (++num_words == fails_at) return Fail(ErrorCode::kCancelled, "enough");
        return {};
      });
      if (num_words < fails_at) continue;  // The text has fewer words.
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().message(), "enough");
      EXPECT_EQ(num_words, fails_at);
    }
  }
}

TEST(SplitPatternsTest, LongRunsAreSplitAtOnce) {
  const std::string spaces(1'000'000, ' ');
  EXPECT_EQ(Split({R"(\s*[\r\n]+|\s+(?!\S)|\s+)"}, spaces).size(), 1u);
  // One that takes memory for each step.
  const std::string letters(20'000, 'x');
  EXPECT_EQ(Split({R"((?:x|y)+)"}, letters).size(), 1u);
}

}  // namespace
}  // namespace cria
