#include "core/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/quotable.h"

namespace cria {
namespace {

std::string Encode(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
  if (c < 0x10000) {
    return {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
            static_cast<char>(0x80 | (c & 0x3F))};
  }
  return {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 0x3F)),
          static_cast<char>(0x80 | (c >> 6 & 0x3F)), static_cast<char>(0x80 | (c & 0x3F))};
}

TEST(Utf8Test, EveryCodePoint) {
  for (char32_t c = 0; c < 0x120000; ++c) {
    const std::string text = Encode(c) + "x";
    const Utf8Character character = FirstUtf8Character(text);
    const bool exists = c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
    ASSERT_EQ(character.state == Utf8State::kValid, exists) << static_cast<uint32_t>(c);
    std::array<char, kMaxUtf8Bytes> buffer;
    ASSERT_EQ(EncodeUtf8(c, &buffer), exists ? Encode(c) : kReplacementCharacter);
    if (!exists) {
      ASSERT_EQ(character.size_bytes, 1u);
      continue;
    }
    ASSERT_EQ(character.size_bytes, text.size() - 1);
    ASSERT_EQ(CodePoint(text, character.size_bytes), c);
    for (size_t size = 1; size + 1 < text.size(); ++size) {
      ASSERT_EQ(FirstUtf8Character(text.substr(0, size)).state, Utf8State::kIncomplete);
      ASSERT_EQ(FirstUtf8Character(text.substr(0, size) + "x").state, Utf8State::kInvalid);
      ASSERT_EQ(FirstUtf8Character(text.substr(0, size) + "x").size_bytes, size);
    }
  }
}

TEST(Utf8Test, OverlongFormsAreInvalid) {
  for (const std::string_view text : {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80"}) {
    EXPECT_EQ(FirstUtf8Character(text).state, Utf8State::kInvalid);
    EXPECT_EQ(FirstUtf8Character(text).size_bytes, 1u);
  }
}

TEST(Utf8Test, ValidPrefix) {
  EXPECT_EQ(ValidUtf8Prefix("aé日😀"), 10u);
  EXPECT_EQ(ValidUtf8Prefix("aé\xE6\x97"), 3u);
  EXPECT_EQ(ValidUtf8Prefix("\xFF"), 0u);
  EXPECT_EQ(ValidUtf8Prefix(""), 0u);
}

TEST(QuotableTest, TextStaysAsItIs) {
  for (const std::string_view text : {"", "model.norm.weight", "\"aé日😀\" \\n"}) {
    EXPECT_EQ(Quotable(text), text);
  }
}

TEST(QuotableTest, WhatIsNoTextIsEscaped) {
  EXPECT_EQ(Quotable("a\xFF\xE6\x97z"), R"(a\xFF\xE6\x97z)");
  EXPECT_EQ(Quotable("\xED\xA0\x80"), R"(\xED\xA0\x80)");  // A surrogate.
  EXPECT_EQ(Quotable(std::string_view("\0\n\x1B[2J\x7F", 7)), R"(\x00\x0A\x1B[2J\x7F)");
  EXPECT_EQ(Quotable("é\xC3"), R"(é\xC3)");
}

TEST(QuotableTest, LongTextIsCutBetweenCharacters) {
  const std::string fits(kMaxQuotedBytes, 'x');
  EXPECT_EQ(Quotable(fits), fits);
  EXPECT_EQ(Quotable(fits + "x"), fits + "...");
  const std::string almost(kMaxQuotedBytes - 1, 'x');
  EXPECT_EQ(Quotable(almost + "é"), almost + "...");
  EXPECT_EQ(Quotable(almost + "\xFF"), almost + "...");
  EXPECT_EQ(Quotable(std::string(1 << 20, '\xFF')).size(), kMaxQuotedBytes + 3);
}

}  // namespace
}  // namespace cria
