#include "messages/json_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cria {
namespace {

using Json = nlohmann::ordered_json;

// How readers keep a number that neither 64 bits nor a double keep.
Json Number(std::string_view digits) {
  return Json::binary(std::vector<uint8_t>(digits.begin(), digits.end()));
}

TEST(WriteJsonTest, IsOneLineInTheOrderOfTheFields) {
  EXPECT_EQ(WriteJson(Json::parse(R"({"b": [1, 2.5, null], "a": {"ö": "\n\""}})")),
            R"({"b":[1,2.5,null],"a":{"ö":"\n\""}})");
}

TEST(WriteJsonTest, KeepsEveryDigitOfNumbersOfAnyLength) {
  const std::string digits = "123456789012345678901234567890";
  EXPECT_EQ(WriteJson(Number(digits)), digits);
  EXPECT_EQ(WriteJson(Json{{"a\"b", {1, Number(digits), Number("-" + digits)}}, {"c", "d"}}),
            R"({"a\"b":[1,)" + digits + ",-" + digits + R"(],"c":"d"})");
}

TEST(WriteJsonTest, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(WriteJson(Json("a\xff"
                           "b")),
            "\"a\uFFFDb\"");
  EXPECT_EQ(WriteJson(Json{{"a\xff", Number("1")}}), "{\"a\uFFFD\":1}");
}

TEST(WriteNumbersTest, EachHasTheDigitsThatAFloatNeeds) {
  const std::vector<float> numbers = {0.1f, -0.25f, 1e-20f, 16777216.0f, 0.0f};
  EXPECT_EQ(WriteNumbers(numbers), "0.1,-0.25,1e-20,16777216,0");
  EXPECT_EQ(WriteNumbers({}), "");
  EXPECT_EQ(WriteNumbers(std::vector{1.5f, 2.0f}, ' '), "1.5 2");
}

}  // namespace
}  // namespace cria
