#include "converter/input/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "converter/input/whole_file.h"
#include "core/format.h"
#include "core/utf8.h"
#include "support/files.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string ErrorOf(std::string_view text) {
  const auto parsed = ParseJsonObject(text, "a.json");
  EXPECT_FALSE(parsed);
  return parsed ? "" : parsed.error().message();
}

// {"a": and so on around a number: `depth` objects or arrays inside each other.
std::string Nested(size_t depth, bool of_arrays) {
  std::string open = "{\"a\":";
  std::string close = "}";
  for (size_t i = 1; i < depth; ++i) {
    open += of_arrays ? "[" : "{\"a\":";
    close.insert(close.begin(), of_arrays ? ']' : '}');
  }
  return open + "1" + close;
}

TEST(JsonFileTest, ParsesAnObject) {
  const auto parsed = ParseJsonObject(R"({"a": [1, {"b": null}], "b": {"a": "é"}})", "a.json");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ((*parsed)["b"]["a"], "é");
  EXPECT_EQ((*parsed)["a"][0], 1);
}

TEST(JsonFileTest, RefusesWhatIsNotAnObject) {
  for (const std::string text : {"", "{", "{\"a\":1,}", "{} {}", "nul", "{\"a\":\"\xff\"}"}) {
    EXPECT_THAT(ErrorOf(text), StartsWith("a.json: is not JSON")) << text;
  }
  for (const std::string text : {"[]", "1", "null", "\"a\""}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("a.json: is not a JSON object")) << text;
  }
}

TEST(JsonFileTest, RefusesANameThatComesTwice) {
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": 2, "a": 1})"), HasSubstr("\"a\" appears twice"));
  EXPECT_THAT(ErrorOf(R"({"x": [{"b": 1, "b": 2}]})"), HasSubstr("\"b\" appears twice"));
  EXPECT_TRUE(ParseJsonObject(R"({"a": {"a": [{"a": 1}, {"a": 1}]}})", "a.json"));
}

TEST(JsonFileTest, BoundsTheNesting) {
  for (const bool of_arrays : {false, true}) {
    EXPECT_TRUE(ParseJsonObject(Nested(64, of_arrays), "a.json"));
    for (const size_t depth : {65, 66, 1000, 100'000}) {
      EXPECT_THAT(ErrorOf(Nested(depth, of_arrays)),
                  AllOf(StartsWith("a.json: "), HasSubstr("is nested too deeply")));
    }
  }
}

TEST(JsonFileTest, BoundsTheNestingOfWhatNeverEnds) {
  EXPECT_THAT(ErrorOf(std::string(100'000, '[')), HasSubstr("is nested too deeply"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(ErrorOf(objects), HasSubstr("is nested too deeply"));
}

TEST(JsonFileTest, BoundsTheNumberOfValues) {
  constexpr size_t kMaxValues = size_t{1} << 22;
  const auto with_zeros = [](size_t count) {
    std::string text = "{\"a\":[0";
    for (size_t i = 1; i < count; ++i) text += ",0";
    return text + "]}";
  };
  // The object and the array are values, too.
  EXPECT_TRUE(ParseJsonObject(with_zeros(kMaxValues - 2), "a.json"));
  EXPECT_THAT(ErrorOf(with_zeros(kMaxValues - 1)), HasSubstr("has more than 4194304 values"));
}

// This took a minute when each object was searched for among its neighbours.
TEST(JsonFileTest, ReadsManyMembers) {
  constexpr size_t kMembers = 200'000;
  std::string text = "{";
  for (size_t i = 0; i < kMembers; ++i) {
    text += Format("{}\"{}\":{{\"a\":[{}]}}", i == 0 ? "" : ",", i, i);
  }
  const auto parsed = ParseJsonObject(text + "}", "a.json");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->size(), kMembers);
  EXPECT_EQ((*parsed)["199999"]["a"][0], 199'999);
}

TEST(JsonFileTest, ReadsEveryKindOfValue) {
  const auto parsed = ParseJsonObject(
      R"({"a": [null, true, false, -1, 1, 1.5, 18446744073709551615, "\u00e9", [], {}],
          "b": {"c": [[1], {"d": 2}], "e": 3}})",
      "a.json");
  ASSERT_TRUE(parsed) << parsed.error().message();
  const nlohmann::json& a = (*parsed)["a"];
  ASSERT_EQ(a.size(), 10u);
  EXPECT_TRUE(a[0].is_null());
  EXPECT_EQ(a[1], true);
  EXPECT_EQ(a[2], false);
  EXPECT_EQ(a[3], -1);
  EXPECT_TRUE(a[4].is_number_unsigned());
  EXPECT_EQ(a[5], 1.5);
  EXPECT_EQ(a[6], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(a[7], "é");
  EXPECT_EQ(a[8], nlohmann::json::array());
  EXPECT_EQ(a[9], nlohmann::json::object());
  EXPECT_EQ((*parsed)["b"]["c"][0][0], 1);
  EXPECT_EQ((*parsed)["b"]["c"][1]["d"], 2);
  EXPECT_EQ((*parsed)["b"]["e"], 3);
  EXPECT_THAT(ErrorOf(R"({"a": 1e999})"), StartsWith("a.json: is not JSON"));
}

TEST(JsonFileTest, ErrorsAreUtf8WhateverTheyQuote) {
  const std::string not_utf8 = ErrorOf("{\"a\": \"\xff\"}");
  EXPECT_EQ(ValidUtf8Prefix(not_utf8), not_utf8.size()) << not_utf8;
  const std::string twice = ErrorOf(R"({"\u0007é": 1, "\u0007é": 1})");
  EXPECT_THAT(twice, HasSubstr(R"("\x07é" appears twice)"));
}

TEST(JsonFileTest, ErrorsAreShortAndOneLine) {
  const std::string error = ErrorOf("{\"a\": \"\n" + std::string(100'000, 'x'));
  EXPECT_LT(error.size(), 300u);
  EXPECT_THAT(error, Not(HasSubstr("\n")));
  EXPECT_LT(ErrorOf("{\"a\": \"" + std::string(100'000, 'x')).size(), 300u);
  const std::string name(100'000, 'x');
  EXPECT_LT(ErrorOf(Format("{{\"{}\": 1, \"{}\": 1}}", name, name)).size(), 300u);
}

TEST(JsonFileTest, ReadsFilesUpToTheirBound) {
  const support::TemporaryDirectory folder;
  const auto path = folder.path() / "a.json";
  support::WriteFile(path, "{\"a\":1}");
  EXPECT_TRUE(FileExists(path).value());
  EXPECT_FALSE(FileExists(folder.path() / "b.json").value());
  EXPECT_FALSE(FileExists(path / "b.json").value());
  EXPECT_TRUE(ReadJsonFile(path, 7));
  const auto too_long = ReadJsonFile(path, 6);
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message(), AllOf(HasSubstr(path.string()), HasSubstr("7 bytes")));
  const auto absent = ReadJsonFile(folder.path() / "b.json", 7);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace cria
