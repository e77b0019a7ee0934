#include "grammar/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/expression_texts.h"

namespace cria::grammar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Expects that the schema allows the first texts, and none of the second ones.
void Expect(std::string_view schema, std::initializer_list<std::string_view> allowed,
            std::initializer_list<std::string_view> refused) {
  SCOPED_TRACE(schema);
  ExpressionTexts texts;
  const Result<Node> node = ReadJsonSchema(texts.expressions(), schema);
  ASSERT_TRUE(node) << node.error().message();
  const Status begun = texts.Begin(*node);
  ASSERT_TRUE(begun) << begun.error().message();
  for (const std::string_view text : allowed) EXPECT_TRUE(texts.Matches(text)) << text;
  for (const std::string_view text : refused) EXPECT_FALSE(texts.Matches(text)) << text;
}

std::string ErrorOf(std::string_view schema) {
  ExpressionTexts texts;
  const Result<Node> node = ReadJsonSchema(texts.expressions(), schema);
  return node ? "no error" : node.error().message();
}

TEST(JsonSchemaTest, Types) {
  Expect("true", {"1", "{}", "[null]"}, {"x", ""});
  Expect("{}", {"1", "\"a\""}, {""});
  Expect(R"({"type":"integer"})", {"0", "-7"}, {"1.0", "1.5", "\"1\"", "null"});
  Expect(R"({"type":"number"})", {"0", "-7", "1.25", "1.0"}, {"1e5", "\"1\""});
  Expect(R"({"type":["null","boolean"]})", {"null", "true", "false"}, {"0", "\"\""});
  Expect(R"({"type":"string"})", {"\"\"", "\"\\u0000é\""}, {"a", "1"});
  Expect(R"({"type":"array"})", {"[]", "[1, {}]"}, {"{}"});
  Expect(R"({"type":"object"})", {"{}", R"({"a":1})"}, {"[]"});
}

TEST(JsonSchemaTest, Constants) {
  Expect(R"({"const":"a\"b"})", {R"("a\"b")"}, {"\"a\"", "a"});
  Expect(R"({"const":{"a":[1,null],"b":{}}})",
         {R"({"a":[1,null],"b":{}})", "{ \"a\": [ 1, null ], \"b\": {} }"},
         {R"({"a":[1,null]})", R"({"a":[1],"b":{}})", R"({"a":[1,null],"b":{},"c":1})"});
  Expect(R"({"enum":[1,"two",null,[3],1.50,2.0]})", {"1", "\"two\"", "null", "[3]", "1.5", "2"},
         {"3", "[]", "true", "\"1\"", "1.50"});
  Expect(R"({"enum":["a","b","c"],"not":{"const":"b"}})", {"\"a\"", "\"c\""}, {"\"b\""});
  Expect(R"({"enum":[1,2,"a"],"type":"integer","minimum":2})", {"2"}, {"1", "\"a\""});
}

TEST(JsonSchemaTest, Numbers) {
  Expect(R"({"type":"integer","minimum":-3,"maximum":12})", {"-3", "0", "9", "12"},
         {"-4", "13", "-0", "120"});
  Expect(R"({"minimum":1.5})", {"1.5", "2", "1.51", "\"text\"", "null"}, {"1", "1.49", "-2"});
  Expect(R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", {"0.5", "0.01", "0.99"},
         {"0", "1", "0.0", "1.0", "-0.5"});
  Expect(R"({"type":"integer","exclusiveMinimum":1.5,"maximum":9007199254740993})",
         {"2", "9007199254740993"}, {"1", "9007199254740994"});
  Expect(R"({"type":"integer","multipleOf":5})", {"0", "15", "-20"}, {"12", "1"});
  Expect(R"({"type":"number","multipleOf":0.01})", {"0", "1.25", "3", "1.250"}, {"1.255"});
  Expect(R"({"type":"number","not":{"type":"integer"}})", {"0.5"}, {"1", "1.0", "1.00"});
  Expect(R"({"type":"integer","not":{"const":0}})", {"1", "10"}, {"0", "-0"});
  Expect(R"({"type":"number","not":{"enum":[1,2.5]}})", {"1.5", "2"}, {"1", "1.0", "2.5", "2.50"});
}

TEST(JsonSchemaTest, NumbersAreExact) {
  Expect(R"({"const":12345678901234567890})", {"12345678901234567890"}, {"12345678901234567168"});
  Expect(R"({"enum":[18446744073709551615,-9223372036854775809]})",
         {"18446744073709551615", "-9223372036854775809"},
         {"18446744073709551616", "-9223372036854775808"});
  Expect(
      R"({"type":"integer","minimum":18446744073709551614,"exclusiveMaximum":18446744073709551616})",
      {"18446744073709551614", "18446744073709551615"},
      {"18446744073709551613", "18446744073709551616"});
  Expect(R"({"type":"integer","maximum":-9223372036854775809,"minimum":-9223372036854775810})",
         {"-9223372036854775809", "-9223372036854775810"},
         {"-9223372036854775808", "-9223372036854775811"});
  Expect(R"({"const":123456789012345678901234567890})", {"123456789012345678901234567890"},
         {"123456789012345678901234567891"});
  Expect(R"({"const":0.1234567890123456789012})", {"0.1234567890123456789012"},
         {"0.12345678901234568"});
  Expect(R"({"enum":[1e23,25E-1,0.1e+1,-0.0,1.50]})",
         {"100000000000000000000000", "2.5", "1", "0", "1.5"}, {"99999999999999991611392", "-0"});
  Expect(R"({"type":"number","exclusiveMaximum":0.10000000000000000001})",
         {"0.1", "0.10000000000000000000"}, {"0.10000000000000000001"});
  Expect(R"({"const":1e300})", {"1" + std::string(300, '0')}, {"1"});
  Expect(R"({"const":5e-324})", {"0." + std::string(323, '0') + "5"}, {"0"});
  Expect(R"({"maximum":1e300,"type":"integer"})", {"99999999999999999999"}, {});
  Expect(R"({"type":"string","maxLength":18446744073709551616})", {R"("a")"}, {});
  Expect(R"({"type":"string","maxLength":2.0,"minLength":1e0})", {R"("a")", R"("ab")"},
         {R"("abc")"});
  // The same number, written in two ways, is the same constant.
  Expect(R"({"oneOf":[{"type":"object","properties":{"k":{"const":10}},"required":["k"]},
                      {"type":"object","properties":{"k":{"const":1e1}},"required":["k"]},
                      {"type":"object","properties":{"k":{"const":[1.0]}},"required":["k"]},
                      {"type":"object","properties":{"k":{"const":[1]}},"required":["k"]},
                      {"type":"object","properties":{"k":{"const":[2]}},"required":["k"]}]})",
         {R"({"k":[2]})"}, {R"({"k":10})", R"({"k":[1]})"});
}

TEST(JsonSchemaTest, NumbersThatAreTooLongAreRefused) {
  for (const char* number : {"1e400", "-1e401", "1e-401", "1e99999999999999999999", "0.1e-400"}) {
    for (const char* keyword :
         {"const", "minimum", "exclusiveMaximum", "multipleOf", "maxLength"}) {
      EXPECT_EQ(ErrorOf(std::string("{\"") + keyword + "\":" + number + "}"),
                std::string("# has '") + keyword + "', which has a number of more than 400 digits");
    }
    EXPECT_THAT(ErrorOf(std::string(R"({"enum":["a",)") + number + "]}"),
                HasSubstr("# has 'enum', which has a number of more than 400 digits"));
    EXPECT_EQ(ErrorOf(std::string(R"({"type":"string","default":)") + number + "}"), "no error");
  }
  Expect(R"({"const":0e99999999999999999999})", {"0"}, {"1"});
  EXPECT_EQ(ErrorOf(R"({"type":"integer","minimum":100000000000000000000})"),
            "# has 'minimum', which demands numbers of more than 20 digits before the point, which "
            "are not written");
  EXPECT_EQ(ErrorOf(R"({"type":"string","minLength":18446744073709551616})"),
            "# has 'minLength', which demands more than can be counted");
  EXPECT_EQ(ErrorOf(R"({"type":"array","minItems":4294967295})"),
            "# has 'minItems', which demands more than can be counted");
  EXPECT_THAT(ErrorOf(R"({"minLength":1.5})"), HasSubstr("'minLength', which must be a whole"));
  EXPECT_THAT(ErrorOf(R"({"type":"array","not":{"maxItems":1e20}})"), HasSubstr("contradiction"));
  EXPECT_THAT(ErrorOf(R"({"type":"object","not":{"maxProperties":1e20}})"),
              HasSubstr("contradiction"));
}

// Until draft 7, and as `id` until draft 4, an identifier that begins with # is an anchor.
TEST(JsonSchemaTest, IdentifiersOfOlderDrafts) {
  Expect(R"({"$ref":"#x","definitions":{"a":{"$id":"#x","const":1}}})", {"1"}, {"2"});
  constexpr std::string_view kOld = R"({"$schema":"http://json-schema.org/draft-04/schema#",)";
  Expect(std::string(kOld) + R"("$ref":"#x","definitions":{"a":{"id":"#x","const":1}}})", {"1"},
         {"2"});
  const std::string inner = R"("allOf":[{"$ref":"#/definitions/b"}],
      "definitions":{"b":{"id":"http://x/b","$ref":"#/definitions/c","definitions":{"c":{"const":1}}},
                     "c":{"const":2}}})";
  Expect(std::string(kOld) + inner, {"1"}, {"2"});
  Expect("{" + inner, {"2"}, {"1"});
}

TEST(JsonSchemaTest, Strings) {
  Expect(R"({"type":"string","minLength":2,"maxLength":3})", {"\"ab\"", "\"é€😀\"", R"("\"\\")"},
         {"\"a\"", "\"abcd\"", R"("\"")"});
  Expect(R"({"type":"string","pattern":"^[ab]+$","not":{"pattern":"bb"}})", {"\"abab\"", "\"b\""},
         {"\"abb\"", "\"\"", "\"c\""});
  Expect(R"({"pattern":"x"})", {"\"axb\"", "1", "null"}, {"\"ab\""});
  Expect(R"({"type":"string","allOf":[{"pattern":"a"},{"pattern":"b"}],"maxLength":2})",
         {"\"ab\"", "\"ba\""}, {"\"a\"", "\"abc\"", "\"cc\""});
}

TEST(JsonSchemaTest, Formats) {
  Expect(R"({"type":"string","format":"date"})", {"\"2024-02-29\"", "\"1999-12-31\""},
         {"\"2023-02-29\"", "\"1900-02-29\"", "\"2024-13-01\"", "\"2024-04-31\"", "\"24-01-01\""});
  Expect(R"({"type":"string","format":"date-time"})",
         {"\"2024-02-29T23:59:59Z\"", "\"2024-01-01T00:00:00.5+01:30\""},
         {"\"2024-02-29\"", "\"2024-01-01T24:00:00Z\"", "\"2024-01-01T00:00:00\""});
  Expect(R"({"type":"string","format":"uuid"})", {"\"2eb8aa08-aa98-11ea-b4aa-73b441d16380\""},
         {"\"2eb8aa08aa9811eab4aa73b441d16380\""});
  Expect(R"({"type":"string","format":"ipv4"})", {"\"127.0.0.1\""}, {"\"256.0.0.1\"", "\"1.2.3\""});
  Expect(R"({"type":"string","format":"ipv6"})", {"\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"::\""},
         {"\"1:2\"", "\":::\"", "\"1:2:3:4:5:6:7:8:9\""});
  Expect(R"({"type":"string","format":"email"})", {"\"a.b@c.de\""}, {"\"a\"", "\"a.@b.c\""});
  Expect(R"({"type":"string","format":"unknown"})", {"\"anything\""}, {"1"});
}

TEST(JsonSchemaTest, Arrays) {
  Expect(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3})",
         {"[1]", "[1, 2,3]"}, {"[]", "[1,2,3,4]", "[\"a\"]"});
  Expect(R"({"type":"array","prefixItems":[{"type":"string"},{"type":"null"}],"items":false})",
         {"[]", "[\"a\"]", "[\"a\",null]"}, {"[null]", "[\"a\",null,1]"});
  Expect(R"({"type":"array","prefixItems":[true,{"const":2}],"minItems":2,"items":{"const":3}})",
         {"[1,2]", "[1,2,3,3]"}, {"[1]", "[1,3]", "[1,2,4]"});
  Expect(R"({"type":"array","contains":{"const":1},"items":{"type":"integer"}})",
         {"[1]", "[2,1,3]", "[1,1]"}, {"[]", "[2]", "[\"a\",1]"});
  Expect(R"({"type":"array","contains":{"const":1},"minContains":2,"maxContains":3,"maxItems":4})",
         {"[1,1]", "[1,0,1,1]", "[0,1,0,1]"}, {"[1]", "[1,1,1,1]", "[0,0,0,1]", "[1,1,0,0,0]"});
  Expect(R"({"type":"array","not":{"items":{"type":"integer"}}})", {"[\"a\"]", "[1,null,1]"},
         {"[]", "[1,2]"});
  Expect(R"({"type":"array","maxItems":1,"uniqueItems":true})", {"[]", "[1]"}, {"[1,1]"});
  Expect(R"({"type":"array","minItems":1000,"maxItems":1001,"items":{"const":0}})", {}, {"[0,0]"});
}

TEST(JsonSchemaTest, Objects) {
  Expect(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},
             "required":["a"],"additionalProperties":false})",
         {R"({"a":1})", R"({"a": 1, "b": "x"})", "{\n  \"a\": 1\n}"},
         {"{}", R"({"b":"x"})", R"({"b":"x","a":1})", R"({"a":1,"c":2})", R"({"a":"x"})"});
  Expect(R"({"type":"object","properties":{"a":{"type":"integer"}}})",
         {"{}", R"({"a":1})", R"({"a":1,"z":null})", R"({"z":null})"},
         {R"({"a":null})", R"({"z":null,"a":1})"});
  Expect(R"({"type":"object","additionalProperties":{"type":"integer"},"required":["q"]})",
         {R"({"q":1})", R"({"q":1,"r":2})"}, {"{}", R"({"q":"a"})", R"({"q":1,"r":"x"})"});
  Expect(R"({"type":"object","patternProperties":{"^n_":{"type":"integer"},"s$":{"minimum":5}},
             "additionalProperties":false})",
         {"{}", R"({"n_a":1})", R"({"n_s":6})", R"({"es":"x"})"},
         {R"({"n_a":"x"})", R"({"n_s":1})", R"({"n_s":"x"})", R"({"a":1})"});
  Expect(R"({"type":"object","propertyNames":{"maxLength":2},"properties":{"long":true}})",
         {"{}", R"({"ab":1})"}, {R"({"abc":1})", R"({"long":1})"});
  Expect(R"({"type":"object","properties":{"":{"const":1},"a\"b":{"const":2}}})",
         {R"({"":1,"a\"b":2})"}, {R"({"":2})", R"({"a\"b":1})"});
}

TEST(JsonSchemaTest, NumbersOfProperties) {
  constexpr std::string_view kClosed = R"(,"properties":{"a":true,"b":true,"c":true},
                                           "additionalProperties":false})";
  Expect(std::string(R"({"type":"object","minProperties":2)").append(kClosed),
         {R"({"a":1,"c":2})", R"({"a":1,"b":2,"c":3})"}, {"{}", R"({"b":1})"});
  Expect(std::string(R"({"type":"object","maxProperties":1)").append(kClosed), {"{}", R"({"c":1})"},
         {R"({"a":1,"b":1})"});
  Expect(R"({"type":"object","minProperties":1})", {R"({"x":1})", R"({"x":1,"y":2})"}, {"{}"});
  Expect(R"({"type":"object","maxProperties":2,"properties":{"a":true},"required":["a"]})",
         {R"({"a":1})", R"({"a":1,"x":2})"}, {"{}", R"({"x":1})", R"({"a":1,"x":2,"y":3})"});
  Expect(R"({"type":"object","maxProperties":0})", {"{}", "{ }"}, {R"({"x":1})"});
  // The names of others may be equal.
  EXPECT_THAT(ErrorOf(R"({"type":"object","minProperties":2})"),
              StartsWith("# has 'minProperties', which demands more properties than are named"));
}

TEST(JsonSchemaTest, References) {
  Expect(R"({"$ref":"#/$defs/a~1b%20c","$defs":{"a/b c":{"type":"integer"}}})", {"1"}, {"\"a\""});
  Expect(R"({"$ref":"#/$defs/a","minimum":3,"$defs":{"a":{"type":"integer"}}})", {"3"},
         {"2", "3.5"});
  Expect(R"({"$ref":"#here","definitions":{"x":{"$anchor":"here","const":1}}})", {"1"}, {"2"});
  Expect(R"({"$id":"http://x/y/z.json","$ref":"w.json","$defs":{"q":{"$id":"w.json","const":1}}})",
         {"1"}, {"2"});
  Expect(R"({"type":"object","properties":{"next":{"$ref":"#"},"v":{"type":"integer"}},
             "required":["v"],"additionalProperties":false})",
         {R"({"v":1})", R"({"next":{"next":{"v":1},"v":2},"v":3})"}, {R"({"next":{},"v":1})"});
  EXPECT_EQ(ErrorOf(R"({"properties":{"a":{"$ref":"http://x/y"}}})"),
            "#/properties/a has '$ref', which refers to 'http://x/y', which is not in this schema");
  EXPECT_EQ(ErrorOf(R"({"$ref":"#"})"), "# refers to itself before any part of the value is read");
  EXPECT_THAT(ErrorOf(R"({"anyOf":[{"$ref":"#"},{"type":"null"}]})"),
              HasSubstr("refers to itself"));
}

TEST(JsonSchemaTest, SchemasThatContainThemselvesWithoutEnd) {
  Expect(R"({"type":"object","properties":{"a":{"$ref":"#/$defs/inf"},"b":{"const":1}},
             "additionalProperties":false,
             "$defs":{"inf":{"type":"object","properties":{"x":{"$ref":"#/$defs/inf"}},
                             "required":["x"]}}})",
         {"{}", R"({"b":1})"}, {R"({"a":{}})"});
  EXPECT_THAT(ErrorOf(R"({"type":"object","properties":{"x":{"$ref":"#"}},"required":["x"]})"),
              HasSubstr("contradiction"));
}

TEST(JsonSchemaTest, AlternativesAreExact) {
  Expect(R"({"anyOf":[{"type":"integer"},{"type":"string","maxLength":1}]})", {"1", "\"a\""},
         {"\"ab\"", "null"});
  Expect(R"({"oneOf":[{"type":"integer"},{"minimum":2}]})", {"1", "2.5", "null"}, {"3", "1.5"});
  Expect(R"({"oneOf":[{"type":"string","minLength":2},{"type":"string","maxLength":4}]})",
         {"\"a\"", "\"abcde\""}, {"\"ab\"", "\"abcd\""});
  Expect(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
             "additionalProperties":false,"oneOf":[{"required":["a"]},{"required":["b"]}]})",
         {R"({"a":1})", R"({"b":1})"}, {"{}", R"({"a":1,"b":1})"});
  Expect(R"({"type":"object","oneOf":[
             {"properties":{"kind":{"const":"a"},"v":{"type":"integer"}},"required":["kind","v"]},
             {"properties":{"kind":{"const":"b"},"v":{"type":"string"}},"required":["kind","v"]}]})",
         {R"({"kind":"a","v":1})", R"({"kind":"b","v":"x"})"},
         {R"({"kind":"a","v":"x"})", R"({"kind":"c","v":1})", R"({"v":1})"});
  Expect(R"({"oneOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
                      {"properties":{"b":{"type":"string"}},"required":["b"]}]})",
         {R"({"a":1})", R"({"b":"x"})", R"({"a":1,"b":2})", R"({"a":null,"b":"x"})"},
         {R"({"a":1,"b":"x"})", "{}", R"({"a":null})", "1"});
  Expect(
      R"({"type":"integer","allOf":[{"anyOf":[{"minimum":5},{"maximum":1}]},{"not":{"const":6}}]})",
      {"5", "1", "7"}, {"3", "6"});
}

TEST(JsonSchemaTest, Negations) {
  Expect(R"({"not":{"type":["integer","string"]}})", {"1.5", "null", "[]"}, {"1", "\"a\""});
  Expect(R"({"type":"object","not":{"required":["a"]}})", {"{}", R"({"b":1})"}, {R"({"a":1})"});
  Expect(R"({"not":{"type":"object","properties":{"a":{"type":"string"}}}})", {"1", R"({"a":1})"},
         {"{}", R"({"a":"x"})"});
  Expect(R"({"type":"object","not":{"properties":{"a":true},"additionalProperties":false}})",
         {R"({"b":1})", R"({"a":1,"b":1})"}, {"{}", R"({"a":1})"});
  Expect(R"({"type":"array","not":{"const":[1,{"a":2}]}})",
         {"[]", "[1]", R"([1,{"a":3}])", R"([1,{"a":2},3])", R"([1,{"a":2,"b":2}])"},
         {R"([1,{"a":2}])"});
  Expect(
      R"({"type":"object","additionalProperties":{"type":"integer"},"not":{"additionalProperties":
             {"minimum":0}}})",
      {R"({"a":-1})", R"({"a":1,"b":-1})"}, {"{}", R"({"a":1})", R"({"a":"x"})"});
  Expect(R"({"type":"object","not":{"properties":{"a":{"type":"string"}},"required":["a","b"]}})",
         {"{}", R"({"b":1})", R"({"a":1,"b":1})", R"({"a":"x"})"}, {R"({"a":"x","b":1})"});
  Expect(R"({"if":{"type":"integer"},"then":{"minimum":3},"else":{"type":"string"}})",
         {"3", "\"x\""}, {"2", "null", "3.5"});
  Expect(R"({"type":"object","properties":{"a":true,"b":true},"dependentRequired":{"a":["b"]}})",
         {"{}", R"({"b":1})", R"({"a":1,"b":1})"}, {R"({"a":1})"});
  Expect(R"({"type":"object","properties":{"a":true,"b":true},
             "dependentSchemas":{"a":{"properties":{"b":{"type":"null"}}}}})",
         {"{}", R"({"b":1})", R"({"a":1,"b":null})"}, {R"({"a":1,"b":1})"});
}

// Without a look at their constants, each pair of branches would be compared as a whole, or be
// excluded from each other.
TEST(JsonSchemaTest, ManyBranchesWithAConstantEach) {
  std::string schema = R"({"type":"array","items":{"oneOf":[)";
  for (int i = 0; i < 100; ++i) {
    const std::string name = std::to_string(i);
    schema += std::string(i == 0 ? "" : ",") + R"({"type":"object","properties":{"kind":)" +
              (i % 2 == 0 ? R"({"const":"k)" + name + "\"}" : R"({"enum":["k)" + name + "\"]}") +
              ",\"v" + name + R"(":{"type":"integer"}},"required":["kind"]})";
  }
  schema += "]}}";
  Expect(schema, {R"([{"kind":"k7","v7":1},{"kind":"k98","v7":"x"}])", "[]"},
         {R"([{"kind":"k7","v7":"x"}])", R"([{"kind":"k100"}])", R"([{"v7":1}])"});
}

TEST(JsonSchemaTest, ErrorsNameThePlace) {
  EXPECT_EQ(
      ErrorOf(R"({"properties":{"a/b":{"type":"array","uniqueItems":true}}})"),
      "#/properties/a~1b has 'uniqueItems', which is supported only where maxItems is at most "
      "1");
  EXPECT_EQ(ErrorOf(R"({"allOf":[true,{"unevaluatedProperties":false}]})"),
            "#/allOf/1 has 'unevaluatedProperties', which is not supported");
  EXPECT_EQ(ErrorOf(R"({"items":{"type":"integer","multipleOf":7}})"),
            "#/items has 'multipleOf', which is supported only for 1, 2 and 5, and these times or "
            "divided by 10, 100 and so on");
  EXPECT_THAT(ErrorOf(R"({"properties":{"a":{"pattern":"(?<=x)y"}}})"),
              StartsWith("#/properties/a has 'pattern', which is '(?<=x)y': "));
  EXPECT_THAT(ErrorOf(R"({"properties":{"a":{"type":"str"}}})"),
              StartsWith("#/properties/a has 'type', which must be the name of a type"));
  EXPECT_THAT(ErrorOf(R"({"type":"string","minLength":-1})"),
              HasSubstr("'minLength', which must be"));
  EXPECT_THAT(ErrorOf(R"({"minimum":"1"})"), HasSubstr("'minimum', which must be a number"));
  EXPECT_THAT(ErrorOf(R"({"anyOf":{}})"), HasSubstr("'anyOf', which must be a list"));
  EXPECT_THAT(ErrorOf(R"({"not":1})"), HasSubstr("where a schema, which is an object"));
  EXPECT_THAT(ErrorOf("{"), StartsWith("the schema is not JSON: byte 1: "));
  EXPECT_EQ(ErrorOf("\"\xFF\""), "the schema is not UTF-8");
  EXPECT_EQ(
      ErrorOf(
          R"({"type":"object","properties":{"a":{"type":"string","enum":[1,2]}},"required":["a"]})"),
      "#/properties/a is a contradiction: no value matches all of its keywords");
  EXPECT_EQ(ErrorOf("false"), "# is a contradiction: no value matches all of its keywords");
  EXPECT_THAT(ErrorOf(R"({"type":"integer","minimum":3,"maximum":2})"), HasSubstr("contradiction"));
  EXPECT_THAT(ErrorOf(R"({"type":"string","pattern":"^a$","minLength":2})"),
              HasSubstr("contradiction"));
}

TEST(JsonSchemaTest, BranchesThatContainTheirSchemaAreRefused) {
  for (const char* schema : {
           R"({"oneOf":[{"type":"array"},{"type":"string"},{"$ref":"#"}]})",
           R"({"oneOf":[true,{"$ref":"#"}]})",
           R"({"oneOf":[{"$ref":"#"},{"$ref":"#"}]})",
           R"({"if":{"$ref":"#"},"then":{"type":"null"}})",
           R"({"anyOf":[{"oneOf":[{"not":{"$ref":"#"}},{"type":"null"}]},{"type":"string"}]})",
       }) {
    EXPECT_THAT(ErrorOf(schema), HasSubstr("refers to itself")) << schema;
  }
}

TEST(JsonSchemaTest, HostileSchemasEndSoon) {
  std::string exponential = R"({"allOf":[)";
  for (int i = 0; i < 40; ++i) {
    exponential += R"({"anyOf":[{"required":["a)" + std::to_string(i) + R"("]},{"required":["b)" +
                   std::to_string(i) + R"("]}]},)";
  }
  exponential += "true]}";
  std::string constants = R"({"enum":[)";
  for (int i = 0; i < 30'000; ++i) constants += "\"v" + std::to_string(i) + "\",";
  constants += "1]}";
  std::string objects = R"({"oneOf":[)";
  for (int i = 0; i < 2'000; ++i) {
    objects += R"({"properties":{"p)" + std::to_string(i) + R"(":{"type":"null"}}},)";
  }
  objects += "true]}";
  std::string names = R"({"type":"object","properties":{)";
  for (int i = 0; i < 9'000; ++i) names += "\"n" + std::to_string(i) + "\":{},";
  names += R"("x":{}}})";
  std::string chain = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 3'000; ++i) {
    chain += "\"d" + std::to_string(i) + R"(":{"$ref":"#/$defs/d)" + std::to_string(i + 1) + "\"},";
  }
  chain += R"("d3000":true}})";
  std::string patterns = R"({"type":"object","patternProperties":{)";
  for (int i = 0; i < 30; ++i) patterns += "\"p" + std::to_string(i) + "\":{},";
  patterns += R"("x":{}}})";
  std::string nested = R"({"$ref":"#/$defs/d0","$defs":{)";
  for (int i = 0; i < 600; ++i) {
    const std::string next = R"({"required":["x"],"properties":{"x":{"$ref":"#/$defs/d)" +
                             std::to_string(i + 1) + "\"}}}";
    nested += "\"d" + std::to_string(i) + R"(":{"oneOf":[)" + next + "," + next + "]},";
  }
  nested += R"("d600":true}})";
  std::string deep = "1";
  for (int i = 0; i < 2'000; ++i) deep = R"({"items":)" + deep + "}";
  // The reader counts its steps: the sentence says which limit was reached, or it was read before.
  const std::pair<std::string, std::string_view> cases[] = {
      {exponential, "too many combinations of alternatives"},
      {constants, "no error"},
      {objects, "too many combinations of alternatives"},
      {names, "the schema is too large"},
      {chain, "the schema is too large"},
      {patterns, "has more than 8 patterns"},
      {nested, "is a contradiction"},
      {deep, "nested too deeply"}};
  for (const auto& [schema, sentence] : cases) {
    EXPECT_THAT(ErrorOf(schema), HasSubstr(sentence)) << schema.substr(0, 30);
  }
}

TEST(JsonSchemaTest, EndsWhereverTheMemoryEnds) {
  std::string patterns = R"({"allOf":[)";
  for (int i = 0; i < 3; ++i) patterns += R"({"pattern":"a)" + std::to_string(i) + R"(.*b"},)";
  patterns += "true]}";
  for (const std::string_view schema :
       {std::string_view("{}"), std::string_view(patterns),
        std::string_view(R"({"type":"object","properties":{"a":{"$ref":"#"},"b":{}}})")}) {
    bool was_read = false;
    for (size_t words = 8; words < size_t{1} << 17; words += words / 8) {
      ExpressionTexts texts(words * sizeof(uint64_t));
      const Result<Node> node = ReadJsonSchema(texts.expressions(), schema);
      was_read |= node.has_value();
      if (node) continue;
      EXPECT_EQ(node.error().code(), ErrorCode::kOutOfMemory) << node.error().message();
    }
    EXPECT_TRUE(was_read) << schema;
  }
}

}  // namespace
}  // namespace cria::grammar
