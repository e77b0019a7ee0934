#include "server/calls/json_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "server/requests/json_body.h"

namespace cria::server {
namespace {

// What the scanner tells of a text, each step by the byte of the text: "{" begins an object, "e" is
// an element, "k" a key, "v" a value, "V" its end, "}" the end of an object, "!" is invalid, "$"
// the end of the text.
std::string Steps(const std::string& text, size_t watched_depth) {
  JsonScanner scanner;
  scanner.Begin(watched_depth);
  std::string steps;
  for (const char byte : text) {
    const JsonScanner::Step step = scanner.Take(byte);
    steps += ".{ekvV}!"[static_cast<size_t>(step)];
    if (step == JsonScanner::Step::kInvalid) return steps;
    if (scanner.is_complete()) return steps + '$';
  }
  return steps;
}

TEST(JsonScannerTest, TellsTheFieldsOfAnObject) {
  EXPECT_EQ(Steps(R"({"a": "b", "c":[1,{"d":2}]})", 1), R"({..k..v.V....k.v.........V}$)");
  EXPECT_EQ(Steps(R"({"a":-1.5e3, "b":true})", 1), R"({..k.v.........k.v...}$)");
  EXPECT_EQ(Steps(R"({"a":"}\"{"})", 1), R"({..k.v....V}$)");
  EXPECT_EQ(Steps("{}", 1), "{}$");
}

TEST(JsonScannerTest, TellsTheFieldsOfObjectsInAList) {
  EXPECT_EQ(Steps(R"([{"a":{}}, {}])", 2), R"(.{..k.vV}..{}.$)");
  EXPECT_EQ(Steps(R"([1, "a", [{"b":1}]])", 2), R"(.e..e....e.........$)");
  EXPECT_EQ(Steps(R"({"a":[{"b":1}]})", 0), R"(...............$)");
}

TEST(JsonScannerTest, SaysWhereTextIsNoJson) {
  EXPECT_EQ(Steps("{see", 1), "{!");
  EXPECT_EQ(Steps("[see", 2), ".!");
  EXPECT_EQ(Steps(R"({"a" 1)", 1), "{..k.!");
  EXPECT_EQ(Steps(R"({"a":1])", 1), "{..k.v!");
  EXPECT_EQ(Steps(R"({"a":1,})", 1), "{..k.v.!");
  EXPECT_EQ(Steps("[1 2", 0), "...!");
  EXPECT_EQ(Steps("{\"a\n", 1), "{..!");
  const std::string deep(kMaxJsonDepth + 1, '[');
  EXPECT_EQ(Steps(deep, 0), std::string(kMaxJsonDepth, '.') + "!");
}

TEST(JsonScannerTest, GoesOnBehindAValue) {
  JsonScanner scanner;
  scanner.Begin(2);
  for (const char byte : std::string(R"([{"a": {"b": [)")) scanner.Take(byte);
  scanner.GoToValueEnd();
  EXPECT_EQ(scanner.Take('}'), JsonScanner::Step::kObjectEnd);
  // Also behind an object that has just ended.
  scanner.GoToValueEnd();
  EXPECT_EQ(scanner.Take(','), JsonScanner::Step::kInside);
  EXPECT_EQ(scanner.Take('}'), JsonScanner::Step::kInvalid);
}

TEST(JsonScannerTest, TakesWhatAParserTakes) {
  std::mt19937 random(1);
  const std::string alphabet = R"({}[]":, a1\)";
  size_t num_complete = 0;
  for (int times = 0; times < 200'000; ++times) {
    std::string text(1, random() % 2 == 0 ? '{' : '[');
    for (size_t i = random() % 12; i > 0; --i) text += alphabet[random() % alphabet.size()];
    JsonScanner scanner;
    scanner.Begin(1);
    size_t taken = 0;
    bool is_valid = true;
    while (is_valid && taken < text.size() && (taken == 0 || !scanner.is_complete())) {
      is_valid = scanner.Take(text[taken++]) != JsonScanner::Step::kInvalid;
    }
    const bool is_json = Json::accept(text.substr(0, taken));
    // Words are not checked, and escapes neither.
    if (is_json) {
      EXPECT_TRUE(is_valid && scanner.is_complete()) << text;
      ++num_complete;
    }
    if (!is_valid) {
      EXPECT_FALSE(Json::accept(text)) << text;
    }
  }
  EXPECT_GT(num_complete, 1000u);
}

}  // namespace
}  // namespace cria::server
