#include "server/calls/argument_grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "grammar/gbnf.h"
#include "server/calls/form_texts.h"
#include "server/calls/parameter_kind.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

// An option that refers to all options, so that there are more ways through them than can be gone.
TEST(ParameterKindTest, OptionsThatReferToEachOtherAreFollowedInAShortTime) {
  Json options = Json::array();
  while (options.size() < 30) options.push_back({{"$ref", "#/properties/a"}});
  const Json root = {{"properties", {{"a", {{"anyOf", options}}}}}};
  EXPECT_EQ(KindOf(root["properties"]["a"], root), ParameterKind::kEither);
}

TEST(ParameterKindTest, OptionsOfOneKindHaveThatKind) {
  const auto kind_of = [](const char* schema) {
    const Json root = Json::parse(schema);
    return KindOf(root, root);
  };
  EXPECT_EQ(kind_of(R"({"anyOf": [{"type": "string"}, {"enum": ["a"]}]})"), ParameterKind::kText);
  EXPECT_EQ(kind_of(R"({"oneOf": [{"const": 1}, {"type": "null"}, {"$ref": "#/$defs/n"}],
                        "$defs": {"n": {"type": "array"}}})"),
            ParameterKind::kValue);
  EXPECT_EQ(kind_of(R"({"anyOf": [{"type": "string"}, {"type": "null"}]})"),
            ParameterKind::kEither);
}

// Each parameter with a reference has the whole schema, which would take much memory together.
TEST(ArgumentGrammarTest, ParametersWithReferencesStayWithinBounds) {
  Json schema = {
      {"type", "object"},
      {"$defs", {{"n", {{"type", "integer"}, {"description", std::string(50'000, 'x')}}}}}};
  for (int i = 0; i < 400; ++i) {
    schema["properties"]["p" + std::to_string(i)] = {{"$ref", "#/$defs/n"}};
  }
  const std::string rules = TaggedRules(FormOf("function-parameter"), schema);
  EXPECT_GT(rules.size(), grammar::kMaxGbnfBytes);  // It is refused.
  EXPECT_LT(rules.size(), 2 * grammar::kMaxGbnfBytes);
}

TEST(ArgumentGrammarTest, ItemsOfNestedListsAreWrittenOnce) {
  Json list = {{"type", "integer"}, {"minimum", 12345}};
  for (int depth = 0; depth < 7; ++depth) list = {{"type", "array"}, {"items", list}};
  const Json schema = {{"type", "object"}, {"properties", {{"a", list}}}};
  for (const char* const id : {"call-braces", "python-list"}) {
    const std::string rules = LiteralRules(FormOf(id), schema);
    const size_t place = rules.find("12345");
    EXPECT_NE(place, rules.npos);
    EXPECT_EQ(rules.rfind("12345"), place) << rules;
  }
}

}  // namespace
}  // namespace cria::server
