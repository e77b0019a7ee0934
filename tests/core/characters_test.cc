#include "core/characters.h"

#include <gtest/gtest.h>

#include <string>

namespace cria {
namespace {

TEST(CharactersTest, HaveTheLengthOfTheirUtf8) {
  EXPECT_EQ(CharacterBytes("ab"), 1u);
  EXPECT_EQ(CharacterBytes("äb"), 2u);
  EXPECT_EQ(CharacterBytes("한b"), 3u);
  EXPECT_EQ(CharacterBytes("🦙b"), 4u);
  EXPECT_EQ(CodeOf("🦙b"), 0x1F999u);
}

TEST(CharactersTest, AByteThatIsNotUtf8IsOne) {
  const std::string text = "a\xFF\xED\xA0\x80ä";  // 0xED 0xA0 0x80 would be half of a pair.
  EXPECT_EQ(CountCharacters(text), 6u);
  EXPECT_EQ(CharacterBytes(text.substr(1)), 1u);
  EXPECT_EQ(CodeOf(text.substr(1)), 0xFFFFu);
  EXPECT_EQ(CharacterBytes("\xE2\x82"), 1u);  // It ends too early.
}

TEST(CharactersTest, OffsetsEndWhereTheTextDoes) {
  EXPECT_EQ(CharacterOffset("äbc", 0), 0u);
  EXPECT_EQ(CharacterOffset("äbc", 1), 2u);
  EXPECT_EQ(CharacterOffset("äbc", 3), 4u);
  EXPECT_EQ(CharacterOffset("äbc", 9), 4u);
  EXPECT_EQ(CharacterOffset("", 1), 0u);
}

TEST(CharactersTest, WhiteSpaceIsPythons) {
  for (const char* const space :
       {" ", "\t", "\n", "\x1C", "\u0085", "\u00A0", "\u2003", "\u3000"}) {
    EXPECT_TRUE(IsWhiteSpace(space)) << space;
  }
  for (const char* const other : {"a", "\u200B", "\uFEFF", "\x85", "\u180E"}) {
    EXPECT_FALSE(IsWhiteSpace(other)) << other;
  }
}

}  // namespace
}  // namespace cria
