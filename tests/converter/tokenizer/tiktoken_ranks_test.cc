#include "converter/tokenizer/tiktoken_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/test_vocabulary.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<AddedToken>& Specials() {
  static const std::vector<AddedToken> tokens = {{6, "<|begin_of_text|>", true},
                                                 {7, "<|eot_id|>", true}};
  return tokens;
}

// a, b, c, "ab", "bc", "abc" at ranks 0 to 5.
constexpr std::string_view kRanks = "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYmM= 4\r\nYWJj 5\n";

TEST(TiktokenRanksTest, MergesByTheRankOfWhatIsMade) {
  const auto draft = ReadTiktokenRanks(kRanks, Specials(), "tokenizer.model");
  ASSERT_TRUE(draft) << draft.error().message();
  EXPECT_EQ(draft->pieces[4].bytes, "bc");
  EXPECT_TRUE(draft->rules.ignore_merges);
  EXPECT_TRUE(draft->rules.add_bos_token);
  EXPECT_EQ(draft->rules.bos_token_id, 6);
  const TestTokenizer tokenizer(*draft);
  EXPECT_THAT(tokenizer.Encode("abc"), ElementsAre(6, 5));
  EXPECT_THAT(tokenizer.Encode("abcc", {.add_bos = false}), ElementsAre(5, 2));
  EXPECT_THAT(tokenizer.Encode("bbc<|eot_id|>", {.add_bos = false, .parse_special = true}),
              ElementsAre(1, 4, 7));
}

TEST(TiktokenRanksTest, RefusesWhatIsNotLlama3s) {
  const auto draft = ReadTiktokenRanks(kRanks, {}, "tokenizer.model");
  ASSERT_FALSE(draft);
  EXPECT_EQ(draft.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(draft.error().message(), HasSubstr("<|begin_of_text|>"));
}

TEST(TiktokenRanksTest, RefusesAFileThatWasCutShort) {
  for (const std::string_view lines :
       {"", "YQ== 0\n", "YQ== 0\nYg== 1\nYw== 2\nYWI= 3\nYmM= 4\n"}) {
    const auto draft = ReadTiktokenRanks(lines, Specials(), "x.model");
    ASSERT_FALSE(draft) << lines;
    EXPECT_EQ(draft.error().code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(draft.error().message(), HasSubstr("but the first special token has the id 6"));
  }
}

TEST(TiktokenRanksTest, WrongLinesAreNamed) {
  for (const auto& [file, named] :
       {std::pair("YQ==", "line 1 is neither"),
        std::pair("YQ== 0\nYg== 2\n", "line 2 has the rank 2"),
        std::pair("YQ== 0\nYg= 1\n", "line 2 does not begin"),
        std::pair("Y!== 0\n", "line 1 does not begin"),
        std::pair("==== 0\n", "line 1 does not begin"), std::pair(" 0\n", "line 1 does not begin"),
        std::pair("YQ== x\n", "line 1 has no rank"), std::pair("YQ== 0x\n", "line 1 has no rank"),
        std::pair("YQ== 99999999999\n", "line 1 has no rank")}) {
    const auto draft = ReadTiktokenRanks(file, Specials(), "x.model");
    ASSERT_FALSE(draft) << file;
    EXPECT_THAT(draft.error().message(), HasSubstr(std::string("x.model: ") + named));
  }
}

TEST(TiktokenRanksTest, ATokenOfAMegabyteIsRefusedAtOnce) {
  // Trying every way to split it would take minutes.
  std::string file(4 << 20, 'Y');
  const auto draft = ReadTiktokenRanks(file + " 0\n", Specials(), "x.model");
  ASSERT_FALSE(draft);
  EXPECT_EQ(draft.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(draft.error().message(), HasSubstr("x.model: piece 0 has 3145728 bytes"));
}

}  // namespace
}  // namespace cria
