#include "jinja/literals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jinja/render_support.h"

namespace cria::jinja {
namespace {

using testing::HasSubstr;

TEST(JinjaLiteralsTest, Escapes) {
  EXPECT_EQ(Print(R"('\n\t\\\'\"')"), "\n\t\\'\"");
  EXPECT_EQ(Print(R"('\x41\u00e9\U0001F999\101')"), "A\u00e9\U0001F999A");
  EXPECT_EQ(Print(R"('\d\ ')"), R"(\d\ )");
  EXPECT_EQ(Print("'a\\\nb'"), "ab");
  // A surrogate is no character.
  EXPECT_EQ(Print(R"('\ud83d')"), "\uFFFD");
  EXPECT_THAT(Print(R"('\x4')"), HasSubstr("without enough digits"));
  EXPECT_THAT(Print(R"('\u00g0')"), HasSubstr("without enough digits"));
}

TEST(JinjaLiteralsTest, NamesOfCharactersAreRefused) {
  const Status status = Template("a\n{% if false %}{{ '\\N{EM DASH}' }}{% endif %}").status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(status.error().message(), HasSubstr("line 2: a string names a character with '\\N'"));
}

TEST(JinjaLiteralsTest, NeighboursAreOneString) { EXPECT_EQ(Print("'a' \"b\"\n'c'"), "abc"); }

TEST(JinjaLiteralsTest, Numbers) {
  EXPECT_EQ(Print("1_000"), "1000");
  EXPECT_EQ(Print("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(Print("1.50"), "1.5");
  EXPECT_EQ(Print("1e3"), "1000.0");
  EXPECT_THAT(Print("9223372036854775808"), HasSubstr("is too large for a number"));
  EXPECT_THAT(Print(std::string(100, '1')), HasSubstr("too many digits"));
}

TEST(JinjaLiteralsTest, WordsWithEitherCase) {
  EXPECT_EQ(Print("[true, True, false, False, none, None]"),
            "[True, True, False, False, None, None]");
}

}  // namespace
}  // namespace cria::jinja
