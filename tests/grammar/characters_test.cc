#include "grammar/characters.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <algorithm>
#include <map>
#include <random>

#include "grammar/character_classes.h"
#include "grammar/expression_texts.h"

namespace cria::grammar {
namespace {

bool IsIn(std::span<const CodePointRange> ranges, uint32_t code_point) {
  return std::ranges::any_of(ranges, [code_point](const CodePointRange& range) {
    return range.first <= code_point && code_point <= range.last;
  });
}

bool IsSurrogate(uint32_t code_point) { return code_point >= 0xD800 && code_point < 0xE000; }

// Sorted and disjoint ranges; many of them around the code points at which UTF-8 or JSON change.
CharacterSet RandomRanges(std::mt19937& random) {
  static constexpr uint32_t kEdges[] = {0,      0x20,   0x22,   0x5C,    0x80,    0x800,
                                        0xD800, 0xE000, 0xFFFF, 0x10000, 0x40000, kMaxCodePoint};
  CharacterSet set;
  const size_t count = random() % 5;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t near = kEdges[random() % std::size(kEdges)];
    uint32_t first = near - std::min<uint32_t>(near, random() % 40);
    uint32_t last = first + random() % (random() % 2 == 0 ? 60 : 0x8000);
    first = std::min(first, kMaxCodePoint);
    last = std::min(last, kMaxCodePoint);
    set.Add(first, last);
  }
  set.Normalize();
  return set;
}

std::vector<uint32_t> InterestingCodePoints(const CharacterSet& set) {
  std::vector<uint32_t> code_points;
  for (uint32_t c = 0; c < 0x90; ++c) code_points.push_back(c);
  for (uint32_t c = 0x90; c <= kMaxCodePoint; c += 0x101) code_points.push_back(c);
  for (const CodePointRange& range : set.ranges()) {
    for (const uint32_t edge : {range.first, range.last}) {
      if (edge > 0) code_points.push_back(edge - 1);
      code_points.push_back(edge);
      if (edge < kMaxCodePoint) code_points.push_back(edge + 1);
    }
  }
  return code_points;
}

TEST(CharactersTest, MatchTheCharactersOfTheRanges) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const CharacterSet set = RandomRanges(random);
    for (const auto encoding : {CharacterEncoding::kUtf8, CharacterEncoding::kJsonString}) {
      ExpressionTexts texts;
      // With another text, so that there is one even if the set has no characters.
      const Node node = Characters(texts.expressions(), set.ranges(), encoding);
      const Node other = texts.expressions().Text("other");
      ASSERT_TRUE(texts.Begin(texts.expressions().Choice(node, other)));
      for (const uint32_t c : InterestingCodePoints(set)) {
        const std::string utf8 = Utf8Of(c);
        const std::string text = encoding == CharacterEncoding::kUtf8 ? utf8 : JsonOf(utf8);
        ASSERT_EQ(texts.Matches(text), IsIn(set.ranges(), c) && !IsSurrogate(c)) << std::hex << c;
      }
    }
  }
}

TEST(CharactersTest, JsonHasOneSpelling) {
  ExpressionTexts texts;
  ASSERT_TRUE(texts.Begin(AnyCharacter(texts.expressions(), CharacterEncoding::kJsonString)));
  for (const char* text : {"\\n", "\\\"", "\\\\", "\\u001f", "\\u001F", "\\u000b", "/", "\x7F"}) {
    EXPECT_TRUE(texts.Matches(text)) << text;
  }
  for (const char* text : {"", "\n", "\"", "\\", "\\/", "\\u000a", "\\u000A", "\\u0041", "\\u0022",
                           "\\u005c", "\\v", "\\x", "ab", "\\u001", "\\U001f"}) {
    EXPECT_FALSE(texts.Matches(text)) << text;
  }
}

TEST(CharactersTest, AnyCharacterIsValidUtf8) {
  ExpressionTexts texts;
  ASSERT_TRUE(texts.Begin(AnyCharacter(texts.expressions(), CharacterEncoding::kUtf8)));
  for (uint32_t c = 0; c <= kMaxCodePoint; c += c < 0x900 ? 1 : 0x3D) {
    ASSERT_EQ(texts.Matches(Utf8Of(c)), !IsSurrogate(c)) << std::hex << c;
  }
  for (const char* text : {"", "\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
                           "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xC3", "\xE2\x82", "\xFF"}) {
    EXPECT_FALSE(texts.Matches(text)) << text;
  }
}

TEST(CharactersTest, LiteralsMatchThemselves) {
  const std::string literal = "a\"b\\\n\x01é😀\x1F";
  for (const auto encoding : {CharacterEncoding::kUtf8, CharacterEncoding::kJsonString}) {
    ExpressionTexts texts;
    ASSERT_TRUE(texts.Begin(Literal(texts.expressions(), literal, encoding)));
    const bool is_json = encoding == CharacterEncoding::kJsonString;
    EXPECT_EQ(texts.Matches(literal), !is_json);
    EXPECT_EQ(texts.Matches(JsonOf(literal)), is_json);
    EXPECT_FALSE(texts.Matches(literal + "x"));
    EXPECT_FALSE(texts.Matches(""));
  }
}

TEST(CharacterSetTest, IsASetOfCodePoints) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    const CharacterSet one = RandomRanges(random);
    const CharacterSet other = RandomRanges(random);
    CharacterSet complement = one;
    complement.Complement();
    CharacterSet united = one;
    united.Add(other);
    united.Normalize();
    const CharacterSet both = one.Intersection(other);
    for (const uint32_t c : InterestingCodePoints(united)) {
      const bool in_one = IsIn(one.ranges(), c);
      const bool in_other = IsIn(other.ranges(), c);
      ASSERT_EQ(IsIn(complement.ranges(), c), !in_one);
      ASSERT_EQ(IsIn(united.ranges(), c), in_one || in_other);
      ASSERT_EQ(IsIn(both.ranges(), c), in_one && in_other);
    }
    for (const CharacterSet* set : {&std::as_const(complement), &std::as_const(united), &both}) {
      const auto ranges = set->ranges();
      for (size_t i = 0; i < ranges.size(); ++i) {
        ASSERT_LE(ranges[i].first, ranges[i].last);
        if (i == 0) continue;
        ASSERT_GT(ranges[i].first, ranges[i - 1].last + 1);
      }
    }
  }
}

// All code points of the property, by asking utf8proc for each.
TEST(UnicodePropertiesTest, FindsAllCodePointsOfACategory) {
  std::map<std::string, std::vector<CodePointRange>> expected;
  for (uint32_t c = 0; c <= kMaxCodePoint; ++c) {
    auto& ranges = expected[utf8proc_category_string(static_cast<utf8proc_int32_t>(c))];
    if (!ranges.empty() && ranges.back().last + 1 == c) {
      ranges.back().last = c;
    } else {
      ranges.push_back({c, c});
    }
  }
  ASSERT_EQ(expected.size(), 30u);
  UnicodeProperties properties;
  std::map<std::string, CharacterSet> groups;
  for (const auto& [name, ranges] : expected) {
    CharacterSet set;
    ASSERT_TRUE(properties.Add(name, &set)) << name;
    set.Normalize();
    ASSERT_EQ(set.ranges().size(), ranges.size()) << name;
    for (size_t i = 0; i < ranges.size(); ++i) {
      ASSERT_EQ(set.ranges()[i].first, ranges[i].first) << name;
      ASSERT_EQ(set.ranges()[i].last, ranges[i].last) << name;
    }
    groups[name.substr(0, 1)].Add(set);
    groups["Any"].Add(set);
    if (name != "Cn") groups["Assigned"].Add(set);
    if (name == "Lu" || name == "Ll" || name == "Lt") groups["LC"].Add(set);
  }
  for (auto& [name, group] : groups) {
    group.Normalize();
    CharacterSet set;
    ASSERT_TRUE(properties.Add(name, &set)) << name;
    set.Normalize();
    ASSERT_EQ(set.ranges().size(), group.ranges().size()) << name;
    for (size_t i = 0; i < set.ranges().size(); ++i) {
      ASSERT_EQ(set.ranges()[i].first, group.ranges()[i].first) << name;
      ASSERT_EQ(set.ranges()[i].last, group.ranges()[i].last) << name;
    }
  }
}

TEST(UnicodePropertiesTest, KnowsLongNames) {
  UnicodeProperties properties;
  const auto has = [&properties](std::string_view name, uint32_t code_point) {
    CharacterSet set;
    EXPECT_TRUE(properties.Add(name, &set)) << name;
    return IsIn(set.ranges(), code_point);
  };
  EXPECT_TRUE(has("Letter", 'a') && has("gc=L", 'a') && has("General_Category=Letter", 0xE9));
  EXPECT_FALSE(has("Letter", '1') || has("Lu", 'a') || has("Uppercase_Letter", 'a'));
  EXPECT_TRUE(has("digit", 0x9EA) && has("Decimal_Number", '0') && has("punct", '!'));
  EXPECT_TRUE(has("cntrl", 1) && has("Combining_Mark", 0x300) && has("Separator", ' '));
  EXPECT_TRUE(has("ASCII", 0x7F) && has("AHex", 'F') && has("ASCII_Hex_Digit", 'a'));
  EXPECT_FALSE(has("ASCII", 0x80) || has("AHex", 'g'));
  CharacterSet set;
  for (const char* name : {"", "Script=Greek", "sc=Grek", "Greek", "l", "LETTER", "Lu;", "L Letter",
                           "gc=Any", "gc=", "gc", "Alphabetic", "Emoji", "Lu Uppercase_Letter"}) {
    EXPECT_FALSE(properties.Add(name, &set)) << name;
  }
  EXPECT_TRUE(set.empty());
}

TEST(CharacterClassesTest, AreThoseOfEcma) {
  const CharacterSet digits = DigitCharacters();
  const CharacterSet words = WordCharacters();
  const CharacterSet spaces = SpaceCharacters();
  const CharacterSet line_ends = LineTerminators();
  for (uint32_t c = 0; c <= kMaxCodePoint; ++c) {
    const bool is_digit = c >= '0' && c <= '9';
    const bool is_word = is_digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool is_line_end = c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029;
    const bool is_space =
        is_line_end || c == '\t' || c == '\v' || c == '\f' || c == 0xFEFF ||
        utf8proc_category(static_cast<utf8proc_int32_t>(c)) == UTF8PROC_CATEGORY_ZS;
    ASSERT_EQ(IsIn(digits.ranges(), c), is_digit) << c;
    ASSERT_EQ(IsIn(words.ranges(), c), is_word) << c;
    ASSERT_EQ(IsIn(line_ends.ranges(), c), is_line_end) << c;
    ASSERT_EQ(IsIn(spaces.ranges(), c), is_space) << c;
  }
}

}  // namespace
}  // namespace cria::grammar
