#include "support/byte_level_tokenizer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace cria::support {
namespace {

using nlohmann::json;

class ByteLevelTokenizerSizes : public testing::TestWithParam<std::pair<size_t, size_t>> {};

TEST_P(ByteLevelTokenizerSizes, EveryPieceIsMadeOfTwoEarlierOnes) {
  const auto [vocab_size, num_special_tokens] = GetParam();
  const ByteLevelTokenizer tokenizer = MakeByteLevelTokenizer(vocab_size, num_special_tokens);
  EXPECT_EQ(tokenizer.vocab_size(), vocab_size);
  EXPECT_EQ(tokenizer.special_tokens.size(), num_special_tokens);
  ASSERT_EQ(tokenizer.pieces.size(), 256 + tokenizer.merges.size());
  for (size_t i = 0; i < tokenizer.merges.size(); ++i) {
    const auto [left, right] = tokenizer.merges[i];
    ASSERT_LT(std::max(left, right), 256 + i);
    ASSERT_EQ(tokenizer.pieces[left] + tokenizer.pieces[right], tokenizer.pieces[256 + i]);
  }
  EXPECT_EQ(std::set(tokenizer.pieces.begin(), tokenizer.pieces.end()).size(),
            tokenizer.pieces.size());
}

INSTANTIATE_TEST_SUITE_P(Sizes, ByteLevelTokenizerSizes,
                         testing::Values(std::pair(263, 7), std::pair(300, 7), std::pair(2048, 20),
                                         std::pair(128256, 256)));

TEST(ByteLevelTokenizer, RefusesSizesThatCannotBe) {
  EXPECT_THROW(MakeByteLevelTokenizer(262), std::runtime_error);
  EXPECT_THROW(MakeByteLevelTokenizer(300, 6), std::runtime_error);
  EXPECT_THROW(MakeByteLevelTokenizer(1'000'000), std::runtime_error);
  EXPECT_NO_THROW(MakeByteLevelTokenizer(490'000));
  EXPECT_THROW(MakeByteLevelTokenizer(300).SpecialTokenId("<|none|>"), std::out_of_range);
}

TEST(ByteLevelTokenizer, WritesTheByteLevelAlphabet) {
  const json file = json::parse(TokenizerJson(MakeByteLevelTokenizer(300), false));
  const json& vocabulary = file.at("model").at("vocab");
  EXPECT_EQ(vocabulary.size(), 293u);
  // Printable bytes come first, then the others, which are written as U+0100 and so on.
  EXPECT_EQ(vocabulary.at("!"), 0);
  EXPECT_EQ(vocabulary.at("~"), 93);
  EXPECT_EQ(vocabulary.at("\u00a1"), 94);
  EXPECT_EQ(vocabulary.at("\u00ff"), 187);
  EXPECT_EQ(vocabulary.at("\u0100"), 188);
  EXPECT_EQ(vocabulary.at("\u0120"), 220);  // The space.
  EXPECT_EQ(vocabulary.at("\u0143"), 255);  // The soft hyphen.
  EXPECT_EQ(vocabulary.at("\u0120the"), 258);
  EXPECT_EQ(file.at("model").at("merges").at(2), "\u0120t he");
  EXPECT_EQ(file.at("added_tokens").at(0).at("id"), 293);
  EXPECT_EQ(file.at("added_tokens").at(0).at("content"), "<|begin_of_text|>");
}

TEST(ByteLevelTokenizer, WritesMergesAsPairs) {
  const json file = json::parse(TokenizerJson(MakeByteLevelTokenizer(300), true));
  EXPECT_EQ(file.at("model").at("merges").at(2), json::array({"\u0120t", "he"}));
}

TEST(ByteLevelTokenizer, WritesTheChatTemplateAskedFor) {
  EXPECT_FALSE(json::parse(TokenizerConfigJson(ChatTemplateText::kNone)).contains("chat_template"));
  const json llama3 = json::parse(TokenizerConfigJson(ChatTemplateText::kLlama3));
  EXPECT_NE(llama3.at("chat_template").get<std::string>().find("<|start_header_id|>"),
            std::string::npos);
  EXPECT_EQ(llama3.at("eos_token"), "<|eot_id|>");
  const json chatml = json::parse(TokenizerConfigJson(ChatTemplateText::kChatMl));
  EXPECT_NE(chatml.at("chat_template").get<std::string>().find("<|im_start|>"), std::string::npos);
}

}  // namespace
}  // namespace cria::support
