#include "server/requests/json_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/requests/request_error.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

std::string Repeated(std::string_view text, size_t count) {
  std::string repeated;
  for (size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

// The sentence with which a body is refused.
std::string Refusal(std::string_view body) {
  try {
    ReadBody(body);
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.message();
  }
  return "";
}

TEST(JsonBodyTest, KeepsTheOrderOfFields) {
  EXPECT_EQ(Written(ReadBody(R"( {"z": 1, "a": {"c": "é", "b": null}, "z": 2} )")),
            R"({"z":2,"a":{"c":"é","b":null}})");
}

TEST(JsonBodyTest, NumbersAreWrittenAsTheyAreRead) {
  const std::string body =
      R"({"a":[18446744073709551615,18446744073709551616,-9223372036854775809,1.50,0.7,1e2],)"
      R"("b":{"é\"":0.1234567890123456789012,"c":[]},"d":"x","e":-0.0,"f":5e-324,"g":1.0})";
  EXPECT_EQ(Written(ReadBody(body)), body);
  const Json read = ReadBody(R"({"a":18446744073709551616,"b":0.7000,"c":2,"d":"1","e":1.5E1})");
  EXPECT_EQ(NumberOf(read["a"]), 18446744073709551616.0);
  EXPECT_EQ(NumberOf(read["b"]), 0.7);
  EXPECT_EQ(NumberOf(read["c"]), 2.0);
  EXPECT_EQ(NumberOf(read["d"]), std::nullopt);
  EXPECT_EQ(NumberOf(read["e"]), 15.0);
  EXPECT_EQ(NumberOf(read), std::nullopt);
  // Such numbers take more memory than others.
  EXPECT_EQ(Refusal("{\"a\":[" + Repeated("1.5,", kMaxJsonValues - 10) + "0]}"), "");
  EXPECT_THAT(Refusal("{\"a\":[" + Repeated("1.50,", kMaxJsonValues / 3) + "0]}"),
              HasSubstr("more than 150000 values"));
}

TEST(JsonBodyTest, TextMayBeNoJson) {
  EXPECT_EQ(TryReadJson(R"({"a":1})"), Json({{"a", 1}}));
  EXPECT_EQ(TryReadJson(R"({"a":1)"), std::nullopt);
  EXPECT_EQ(TryReadJson(""), std::nullopt);
}

TEST(JsonBodyTest, RefusesWhatIsNotAnObjectOfJson) {
  EXPECT_THAT(Refusal(""), HasSubstr("has no body"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(Refusal("1"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(Refusal(R"({"a": 1,})"), HasSubstr("is not JSON: it is wrong at byte 9"));
  EXPECT_THAT(Refusal(R"({"a": NaN})"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal(R"({"a": 1} {)"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal("{\"a\": \"\xFF\"}"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal("{\"a\": \"\xC0\x80\"}"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal(R"({"a": "\ud800"})"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal(R"({"a": "\udc00\ud800"})"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal(R"({"a": 1e999})"), HasSubstr("a number that is too large"));
}

// The time for these must not be that of looking at all of them again for each.
TEST(JsonBodyTest, TakesManyObjectsInAList) {
  EXPECT_EQ(Refusal("{\"a\":[" + Repeated("{},", kMaxJsonValues / 3 - 10) + "0]}"), "");
}

TEST(JsonBodyTest, BoundsDepthValuesAndKeys) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + Repeated("[", depth) + Repeated("]", depth) + "}";
  };
  EXPECT_EQ(Refusal(nested(kMaxJsonDepth - 1)), "");
  EXPECT_THAT(Refusal(nested(kMaxJsonDepth)), HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(Refusal("{\"a\":" + Repeated("[", 1'000'000)), HasSubstr("levels deep"));
  EXPECT_THAT(Refusal(Repeated("{\"a\":", 1'000'000)), HasSubstr("levels deep"));
  EXPECT_THAT(Refusal("{\"a\":[" + Repeated("0,", kMaxJsonValues) + "0]}"),
              HasSubstr("more than 150000 values"));
  // What takes more memory counts as several values.
  for (const char* const value : {"{},", "[],", "\"\",", "\"a\","}) {
    EXPECT_EQ(Refusal("{\"a\":[" + Repeated(value, kMaxJsonValues / 3 - 10) + "0]}"), "") << value;
    EXPECT_THAT(Refusal("{\"a\":[" + Repeated(value, kMaxJsonValues / 3) + "0]}"),
                HasSubstr("values, of which texts, lists, objects and names count as 3"))
        << value;
  }
  const std::string object = "{" + Repeated(R"("a":1,)", 99) + R"("a":1},)";
  EXPECT_EQ(Refusal("{\"a\":[" + Repeated(object, kMaxJsonValues / 403 - 1) + "0]}"), "");
  EXPECT_THAT(Refusal("{\"a\":[" + Repeated(object, kMaxJsonValues / 403 + 1) + "0]}"),
              HasSubstr("more than 150000 values"));
  std::string keys = "{\"k\":0";
  for (size_t i = 0; i < kMaxJsonKeys; ++i) keys += ",\"" + std::to_string(i) + "\":0";
  EXPECT_THAT(Refusal(keys + "}"), HasSubstr("an object with more than 1024 fields"));
}

}  // namespace
}  // namespace cria::server
