// The tokens and the order of prompts for the middle of a text.

#include "server/api/infill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/test_vocabulary.h"

namespace cria::server {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// 256 bytes, <s>, </s>, and these control tokens behind them.
TestTokenizer InfillTokenizer(std::initializer_list<const char*> names) {
  VocabularyDraft draft = ByteLevelDraft({});
  for (const char* const name : names) {
    draft.SetPiece(static_cast<uint32_t>(draft.pieces.size()), name, PieceType::kControl);
  }
  return TestTokenizer(draft);
}
constexpr int32_t kFirstMark = 258;

std::vector<int32_t> InfillIds(const TestTokenizer& tokenizer, const InfillText& text,
                               size_t max_tokens) {
  const auto marks = FindInfillTokens(tokenizer->vocabulary());
  EXPECT_TRUE(marks);
  return EncodeInfill(*tokenizer, *marks, text, max_tokens);
}

TEST(InfillTest, TokensHaveTheNamesOfKnownModels) {
  const auto qwen =
      FindInfillTokens(InfillTokenizer({"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
                                        "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"})
                           ->vocabulary());
  ASSERT_TRUE(qwen);
  EXPECT_EQ(qwen->prefix, kFirstMark);
  EXPECT_EQ(qwen->middle, kFirstMark + 1);
  EXPECT_EQ(qwen->suffix, kFirstMark + 2);
  EXPECT_EQ(qwen->pad, kFirstMark + 3);
  EXPECT_EQ(qwen->repository, kFirstMark + 4);
  EXPECT_EQ(qwen->file, kFirstMark + 5);
  for (const auto& names :
       {std::initializer_list<const char*>{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
        {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
        {"▁<PRE>", "▁<SUF>", "▁<MID>"}}) {
    const auto found = FindInfillTokens(InfillTokenizer(names)->vocabulary());
    ASSERT_TRUE(found) << *names.begin();
    EXPECT_EQ(found->prefix, kFirstMark);
    EXPECT_EQ(found->suffix, kFirstMark + 1);
    EXPECT_EQ(found->middle, kFirstMark + 2);
    EXPECT_EQ(found->file, -1);
  }
  EXPECT_FALSE(FindInfillTokens(InfillTokenizer({})->vocabulary()));
  EXPECT_FALSE(FindInfillTokens(InfillTokenizer({"<fim_prefix>", "<fim_suffix>"})->vocabulary()));
  // Text of such names is no token.
  EXPECT_FALSE(
      FindInfillTokens(TestTokenizer(ByteLevelDraft({"<PRE>", "<SUF>", "<MID>"}))->vocabulary()));
}

TEST(InfillTest, TheMiddleComesLast) {
  const TestTokenizer tokenizer = InfillTokenizer({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  EXPECT_THAT(InfillIds(tokenizer, {.prefix = "ab", .suffix = "yz", .prompt = "c"}, 100),
              ElementsAre(kFirstMark, 'a', 'b', 'c', kFirstMark + 1, 'y', 'z', kFirstMark + 2));
  // Names of tokens in a text are text.
  EXPECT_THAT(InfillIds(tokenizer, {.prefix = "<s>", .suffix = ""}, 100),
              ElementsAre(kFirstMark, '<', 's', '>', kFirstMark + 1, kFirstMark + 2));
  EXPECT_THAT(InfillIds(tokenizer, {.suffix = "z", .extras = {{"f", "q"}}}, 100),
              ElementsAreArray([] {
                std::vector<int32_t> ids;
                for (const char c : std::string("\n\n--- snippet ---\n\nq")) ids.push_back(c);
                ids.insert(ids.end(), {kFirstMark, kFirstMark + 1, 'z', kFirstMark + 2});
                return ids;
              }()));
}

TEST(InfillTest, OtherFilesComeFirst) {
  const TestTokenizer tokenizer = InfillTokenizer(
      {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>"});
  std::vector<int32_t> expected = {kFirstMark + 3};
  const auto append = [&](const std::string& text) {
    for (const char c : text) expected.push_back(c);
  };
  append("myproject\n");
  expected.push_back(kFirstMark + 4);
  append("f.h\nint f;");
  expected.push_back(kFirstMark + 4);
  append("filename\n");
  expected.insert(expected.end(), {kFirstMark, 'a', kFirstMark + 1, 'z', kFirstMark + 2});
  EXPECT_EQ(
      InfillIds(tokenizer, {.prefix = "a", .suffix = "z", .extras = {{"f.h", "int f;"}}}, 200),
      expected);
}

TEST(InfillTest, WhatIsFarFromTheMiddleIsCutOff) {
  const TestTokenizer tokenizer = InfillTokenizer({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});
  std::string prefix;
  std::string suffix;
  for (int i = 0; i < 500; ++i) {
    prefix += static_cast<char>('a' + i % 26);
    suffix += static_cast<char>('A' + i % 26);
  }
  for (const size_t max_tokens : {0u, 5u, 40u, 132u, 332u, 1032u, 5000u}) {
    for (const auto& [before, behind] :
         {std::pair{prefix, suffix}, {std::string("ab"), suffix}, {prefix, std::string("yz")}}) {
      const auto ids = InfillIds(tokenizer, {.prefix = before, .suffix = behind}, max_tokens);
      EXPECT_LE(ids.size(), std::max<size_t>(max_tokens, 3));
      const auto suffix_mark = std::ranges::find(ids, kFirstMark + 1);
      ASSERT_NE(suffix_mark, ids.end());
      const std::string kept_before(ids.begin() + 1, suffix_mark);
      const std::string kept_behind(suffix_mark + 1, ids.end() - 1);
      EXPECT_TRUE(before.ends_with(kept_before));
      EXPECT_TRUE(behind.starts_with(kept_behind));
      const size_t room = max_tokens < 32 ? 0 : max_tokens - 32;
      EXPECT_EQ(kept_before.size() + kept_behind.size(),
                std::min(room, before.size() + behind.size()));
      if (before.size() <= room) continue;
      EXPECT_EQ(kept_behind.size(), std::min(behind.size(), room / 4));
    }
  }
}

}  // namespace
}  // namespace cria::server
