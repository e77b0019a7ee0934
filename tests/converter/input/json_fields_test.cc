#include "converter/input/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cria {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class JsonFieldsTest : public testing::Test {
 protected:
  template <typename T>
  static void ExpectError(const Result<T>& result, ErrorCode code, std::string_view words) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), code);
    EXPECT_THAT(result.error().message(), HasSubstr(words));
  }

  const json object_ = json::parse(R"({"whole": 7, "large": 4294967295, "too_large": 4294967296,
      "negative": -1, "number": 1.5, "yes": true, "text": "abc", "list": [1], "null": null,
      "inner": {"text": "xyz"}})");
  const JsonFields fields_{object_, "a.json"};
};

TEST_F(JsonFieldsTest, TakesFieldsOfTheirTypes) {
  EXPECT_EQ(*fields_.Integer("whole"), 7u);
  EXPECT_EQ(*fields_.Integer("large"), 4294967295u);
  EXPECT_EQ(*fields_.Number("number"), 1.5f);
  EXPECT_EQ(*fields_.Number("whole"), 7.0f);
  EXPECT_TRUE(*fields_.Bool("yes", false));
  EXPECT_EQ(*fields_.String("text"), "abc");
  EXPECT_EQ((*fields_.Array("list"))->size(), 1u);
  EXPECT_EQ(*fields_.Object("inner").String("text"), "xyz");
}

TEST_F(JsonFieldsTest, NullIsAbsent) {
  for (const char* name : {"null", "absent"}) {
    EXPECT_EQ(fields_.Find(name), nullptr);
    EXPECT_EQ(*fields_.Integer(name, 3), 3u);
    EXPECT_EQ(*fields_.Number(name, 2.5f), 2.5f);
    EXPECT_TRUE(*fields_.Bool(name, true));
    EXPECT_EQ(*fields_.String(name, "else"), "else");
    ExpectError(fields_.Integer(name), ErrorCode::kNotFound, "is missing");
    ExpectError(fields_.Number(name), ErrorCode::kNotFound, "is missing");
    ExpectError(fields_.Array(name), ErrorCode::kNotFound, "is missing");
    EXPECT_EQ(fields_.Object(name).Find("text"), nullptr);
  }
}

TEST_F(JsonFieldsTest, AnotherTypeIsNamed) {
  constexpr auto kCode = ErrorCode::kInvalidFile;
  for (const char* name : {"negative", "too_large", "number", "text", "yes", "list", "inner"}) {
    ExpectError(fields_.Integer(name, 3), kCode, "must be a whole number below 2^32");
  }
  ExpectError(fields_.Number("text"), kCode, "a.json: text is \"abc\", but must be a number");
  ExpectError(fields_.Bool("whole", false), kCode, "whole is 7, but must be true or false");
  ExpectError(fields_.String("whole"), kCode, "whole is 7, but must be a string");
  ExpectError(fields_.Array("inner"), kCode, "must be an array");
  ExpectError(fields_.Object("inner").Integer("text"), kCode, "a.json: inner.text is \"xyz\"");
}

TEST_F(JsonFieldsTest, WhatIsNoObjectHasNoFields) {
  const JsonFields fields(object_["list"], "a.json", "list");
  EXPECT_EQ(fields.Find("text"), nullptr);
  ExpectError(fields.Integer("text"), ErrorCode::kNotFound, "a.json: list.text is missing");
}

TEST_F(JsonFieldsTest, ShowsLongValuesShortened) {
  EXPECT_EQ(JsonFields::Text("a\nb"), "\"a\\nb\"");
  EXPECT_LT(JsonFields::Text(std::string(1000, 'x')).size(), 100u);
}

}  // namespace
}  // namespace cria
