// Tokens of texts and texts of tokens.

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

class TokensTest : public testing::Test {
 protected:
  std::vector<int32_t> Tokenize(const char* text, bool add_special, bool parse_special) {
    size_t count = 0;
    EXPECT_EQ(cria_tokenize(model_.get(), text, add_special, parse_special, nullptr, 0, &count),
              CRIA_OK);
    std::vector<int32_t> tokens(count + 1, -7);
    EXPECT_EQ(
        cria_tokenize(model_.get(), text, add_special, parse_special, tokens.data(), count, &count),
        CRIA_OK);
    // Nothing behind them is written.
    EXPECT_EQ(tokens.back(), -7);
    tokens.pop_back();
    return tokens;
  }

  std::string Detokenize(const std::vector<int32_t>& tokens) {
    size_t bytes = 0;
    EXPECT_EQ(cria_detokenize(model_.get(), tokens.data(), tokens.size(), nullptr, 0, &bytes),
              CRIA_OK);
    std::string text(bytes + 2, '#');
    EXPECT_EQ(
        cria_detokenize(model_.get(), tokens.data(), tokens.size(), text.data(), bytes + 1, &bytes),
        CRIA_OK);
    EXPECT_EQ(text[bytes], '\0');
    EXPECT_EQ(text[bytes + 1], '#');
    text.resize(bytes);
    return text;
  }

  const ModelPtr model_ = LoadModel();
};

TEST_F(TokensTest, TextsComeBack) {
  for (const char* text : {"", "a baby llama", "Füchse & 🦙", "two\n\nlines  "}) {
    EXPECT_EQ(Detokenize(Tokenize(text, false, false)), text);
  }
}

TEST_F(TokensTest, SpecialTokensAreTokensOnlyWhereThatIsMeant) {
  EXPECT_EQ(Tokenize("<|im_end|>", false, true).size(), 1u);
  EXPECT_GT(Tokenize("<|im_end|>", false, false).size(), 1u);
  EXPECT_EQ(Detokenize(Tokenize("<|im_end|>", false, true)), "");
}

TEST_F(TokensTest, WhatIsNotUtf8IsReadAsBytesAndWrittenAsUtf8) {
  const std::vector<int32_t> tokens = Tokenize("a\xff\xfe b", false, false);
  EXPECT_EQ(Detokenize(tokens), "a\uFFFD\uFFFD b");
}

TEST_F(TokensTest, ASmallBufferIsRefusedWithTheSizeThatIsNeeded) {
  int32_t tokens[2] = {-7, -7};
  size_t count = 0;
  ExpectFailure(cria_tokenize(model_.get(), "a baby llama and another", 0, 0, tokens, 2, &count),
                CRIA_ERROR_OUT_OF_RANGE, "2 tokens");
  EXPECT_GT(count, 2u);
  EXPECT_EQ(tokens[0], -7);

  const std::vector<int32_t> all = Tokenize("a baby llama", false, false);
  char text[12] = "unchanged";
  size_t bytes = 0;
  ExpectFailure(cria_detokenize(model_.get(), all.data(), all.size(), text, sizeof text, &bytes),
                CRIA_ERROR_OUT_OF_RANGE, "12 bytes");
  EXPECT_EQ(bytes, 12u);
  EXPECT_STREQ(text, "unchanged");
}

TEST_F(TokensTest, TokensThatDoNotExistHaveNoText) {
  EXPECT_EQ(Detokenize({-1, 1 << 30, INT32_MIN}), "");
  EXPECT_EQ(Detokenize({}), "");
}

TEST_F(TokensTest, SeveralThreadsMayAskAtOnce) {
  const std::vector<int32_t> expected = Tokenize("a baby llama", true, false);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(Tokenize("a baby llama", true, false), expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cria_test
