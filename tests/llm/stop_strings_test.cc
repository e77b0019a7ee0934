#include "llm/stop_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace cria {
namespace {

using Strings = std::vector<std::string>;

StopStrings Make(const Strings& strings) {
  auto made = StopStrings::Create(strings);
  EXPECT_TRUE(made) << made.error().message();
  return std::move(*made);
}

// The whole of a text, and whether it was ended by a stop string.
struct Outcome {
  std::string text;
  bool is_found = false;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << '"' << outcome.text << "\" " << outcome.is_found;
}

Outcome Read(StopStrings& stops, const Strings& pieces) {
  Outcome outcome;
  stops.Restart();
  for (const std::string& piece : pieces) {
    for (const std::string_view part : stops.Append(piece)) outcome.text += part;
  }
  outcome.is_found = stops.is_found();
  // The string that was found is where the text was ended.
  std::string whole;
  for (const std::string& piece : pieces) whole += piece;
  EXPECT_EQ(stops.found().empty(), !outcome.is_found);
  EXPECT_TRUE(whole.starts_with(outcome.text + std::string(stops.found())));
  outcome.text += stops.Flush();
  return outcome;
}

// The naive way: looks at every end of the whole text.
Outcome Reference(const Strings& strings, const std::string& text) {
  for (size_t end = 0; end <= text.size(); ++end) {
    const std::string_view read = std::string_view(text).substr(0, end);
    size_t longest = 0;
    for (const std::string& stop : strings) {
      if (read.ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

Strings Bytes(const std::string& text) {
  Strings bytes;
  for (const char byte : text) bytes.emplace_back(1, byte);
  return bytes;
}

TEST(StopStringsTest, TheTextEndsBeforeTheString) {
  StopStrings stops = Make({"</s>"});
  EXPECT_EQ(Read(stops, {"Hello.</s>more"}), (Outcome{"Hello.", true}));
  EXPECT_EQ(Read(stops, {"</s>"}), (Outcome{"", true}));
  EXPECT_EQ(Read(stops, {"Hello."}), (Outcome{"Hello.", false}));
  EXPECT_EQ(Read(stops, {}), (Outcome{"", false}));
}

TEST(StopStringsTest, AStringMayBeSplitOverPieces) {
  StopStrings stops = Make({"User:"});
  EXPECT_EQ(Read(stops, {"Hi", " U", "se", "r", ": you"}), (Outcome{"Hi ", true}));
  EXPECT_EQ(Read(stops, {"Hi", " U", "se", "ful"}), (Outcome{"Hi Useful", false}));
  EXPECT_EQ(Read(stops, {"UUs", "erUse", "r", ":"}), (Outcome{"UUser", true}));
}

TEST(StopStringsTest, OnlyWhatMayBeTheBeginningIsHeldBack) {
  StopStrings stops = Make({"abc", "bd"});
  const auto append = [&](std::string_view piece) {
    std::string text;
    for (const std::string_view part : stops.Append(piece)) text += part;
    return text;
  };
  EXPECT_EQ(append("xa"), "x");
  EXPECT_EQ(append("b"), "");
  EXPECT_EQ(append(""), "");
  // Not "abc", but "b" may begin "bd".
  EXPECT_EQ(append("b"), "ab");
  EXPECT_EQ(append("x"), "bx");
  EXPECT_EQ(append("ab"), "");
  EXPECT_FALSE(stops.is_found());
  EXPECT_EQ(stops.Flush(), "ab");
  EXPECT_EQ(stops.Flush(), "");
}

TEST(StopStringsTest, NothingComesAfterTheString) {
  StopStrings stops = Make({"."});
  Outcome outcome = Read(stops, {"One. Two.", "Three", "."});
  EXPECT_EQ(outcome, (Outcome{"One", true}));
  // Until the next text.
  outcome = Read(stops, {"Four"});
  EXPECT_EQ(outcome, (Outcome{"Four", false}));
}

TEST(StopStringsTest, TheStringThatIsCompleteFirstCounts) {
  // "bc" is complete before "abcd", and the "a" before it is text.
  StopStrings inside = Make({"abcd", "bc"});
  EXPECT_EQ(Read(inside, {"xabcd"}), (Outcome{"xa", true}));
  // Complete at the same byte: the longer one.
  StopStrings nested = Make({"c", "abc", "bc"});
  EXPECT_EQ(Read(nested, {"xabc"}), (Outcome{"x", true}));
}

TEST(StopStringsTest, CharactersStayWhole) {
  // The first bytes of both characters are the same.
  StopStrings stops = Make({"\xc3\xa9!"});
  EXPECT_EQ(stops.Append("a\xc3\xa8")[1], "a\xc3\xa8");
  EXPECT_EQ(stops.Append("\xc3\xa9")[1], "");
  EXPECT_EQ(stops.Append("?")[0], "\xc3\xa9");
}

TEST(StopStringsTest, NoStringsFindNothing) {
  StopStrings none;
  EXPECT_EQ(Read(none, {"a", "", "b"}), (Outcome{"ab", false}));
  EXPECT_EQ(none.longest_bytes(), 0u);
  EXPECT_EQ(Make({"ab", "abcde", "a"}).longest_bytes(), 5u);
}

TEST(StopStringsTest, ZeroBytesAreBytes) {
  StopStrings stops = Make({std::string("\0b", 2)});
  EXPECT_EQ(Read(stops, {std::string("a\0", 2), "b"}), (Outcome{"a", true}));
}

// Texts of two letters, in which strings overlap with themselves and each other.
TEST(StopStringsTest, AgreesWithTheNaiveWayHoweverTheTextIsDivided) {
  std::mt19937 random(7);
  const auto letters = [&](size_t min, size_t max) {
    std::string text(min + random() % (max - min + 1), ' ');
    for (char& letter : text) letter = random() % 2 == 0 ? 'a' : 'b';
    return text;
  };
  size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    Strings strings(1 + random() % 3);
    for (std::string& stop : strings) stop = letters(2, 6);
    const std::string text = letters(0, 40);
    const Outcome expected = Reference(strings, text);
    found += expected.is_found ? 1 : 0;
    Strings pieces;
    for (size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, random() % 5));
      at += pieces.back().size();
    }
    StopStrings stops = Make(strings);
    EXPECT_EQ(Read(stops, {text}), expected);
    EXPECT_EQ(Read(stops, Bytes(text)), expected);
    EXPECT_EQ(Read(stops, pieces), expected);
  }
  // Both outcomes are common.
  EXPECT_GT(found, 1000u);
  EXPECT_LT(found, 2900u);
}

TEST(StopStringsTest, StringsThatCannotBeFoundAreRefused) {
  const auto expect_refused = [](const Strings& strings, const std::string& words) {
    const auto refused = StopStrings::Create(strings);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kUsage);
    EXPECT_EQ(refused.error().message(), words);
  };
  expect_refused({"a", ""}, "stop string 2 is empty");
  expect_refused({"\xff"}, "stop string 1 is not valid UTF-8");
  expect_refused({"a", "b", "\xc3"}, "stop string 3 is not valid UTF-8");
  EXPECT_TRUE(StopStrings::Create({}));
}

}  // namespace
}  // namespace cria
