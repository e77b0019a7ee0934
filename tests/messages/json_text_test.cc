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

}  // namespace
}  // namespace cria
