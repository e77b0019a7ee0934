// Every keyword of JSON Schema in every place where a schema can be, with and without a type: it is
// obeyed, refused by name, or an annotation that decides nothing.

#include "grammar/schema_keywords.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/expression_texts.h"
#include "grammar/json_schema.h"

namespace cria::grammar {
namespace {

// A place for a schema: `@` stands for the schema, `~` for its keywords, and in the instance `@`
// for the value that the schema is about.
struct Position {
  const char* schema;
  const char* instance = "@";
  bool is_negated = false;
  bool is_name = false;  // The value is a name, so only strings can be there.
};

constexpr Position kPositions[] = {
    {"@"},
    {R"({"properties":{"p":@}})", R"({"p":@})"},
    {R"({"type":"object","properties":{"p":@},"required":["p"]})", R"({"p":@})"},
    {R"({"additionalProperties":@})", R"({"p":@})"},
    {R"({"patternProperties":{"^p":@}})", R"({"p":@})"},
    {R"({"propertyNames":@})", R"({@:1})", false, true},
    {R"({"items":@})", "[@]"},
    {R"({"type":"array","items":@,"minItems":2})", "[@,@]"},
    {R"({"prefixItems":[true,@]})", "[0,@]"},
    {R"({"type":"array","contains":@})", "[@]"},
    {R"({"allOf":[true,@]})"},
    {R"({"anyOf":[false,@]})"},
    {R"({"oneOf":[@,false]})"},
    {R"({"not":@})", "@", true},
    {R"({"not":{"not":@}})"},
    {R"({"if":true,"then":@})"},
    {R"({"if":false,"else":@})"},
    {R"({"if":@,"else":false})"},
    {R"({"if":@,"then":false})", "@", true},
    {R"({"$ref":"#/$defs/s","$defs":{"s":@}})"},
    {R"({"$ref":"#/x/0","x":[@]})"},
    {R"({"$ref":"#s","definitions":{"s":{"$anchor":"s",~}}})"},
    {R"({"$ref":"http://x/s","definitions":{"s":{"$id":"http://x/s",~}}})"},
    {R"({"$ref":"#/x","x":true,~})"},
    {R"({"dependentSchemas":{"p":{"properties":{"p":@}}}})", R"({"p":@})"},
    {R"({"dependencies":{"p":{"properties":{"p":@}}}})", R"({"p":@})"},
};

constexpr const char* kTypes[] = {"null",   "boolean", "integer", "number",
                                  "string", "array",   "object"};
// A value of each type.
constexpr const char* kValues[] = {"null", "true", "7", "7.5", "\"text\"", "[]", "{}"};

std::string Replaced(std::string_view text, char sign, std::string_view with) {
  std::string replaced;
  for (const char letter : text) {
    if (letter == sign) {
      replaced += with;
    } else {
      replaced += letter;
    }
  }
  return replaced;
}

// The schema with these keywords at the place; empty if they already stand there.
std::string SchemaAt(const Position& position, const std::string& keywords) {
  const std::string_view place = position.schema;
  const bool has_reference = keywords.contains("\"$ref\"") || keywords.contains("\"$id\"") ||
                             keywords.contains("\"$anchor\"");
  if (place.contains('~') && has_reference) return "";
  return Replaced(Replaced(place, '@', "{" + keywords + "}"), '~', keywords);
}

std::string InstanceAt(const Position& position, std::string_view value) {
  return Replaced(position.instance, '@', value);
}

// The ways in which the keywords can stand beside a type.
std::vector<std::string> WithType(const std::string& keywords, const std::string& type) {
  const std::string typed = R"("type":")" + type + "\"";
  return {typed + "," + keywords, keywords + "," + typed,
          R"("type":["null",")" + type + "\"]," + keywords,
          typed + R"(,"allOf":[{)" + keywords + "}]",
          R"("allOf":[{)" + keywords + "},{" + typed + "}]"};
}

struct Outcome {
  std::string error;  // Empty if the schema was read.
  bool is_valid_allowed = false;
  bool is_invalid_allowed = false;
};

Outcome Try(const std::string& schema, const std::string& valid, const std::string& invalid) {
  // Little memory, because clearing it takes most of the time.
  ExpressionTexts texts(size_t{1} << 18);
  const Result<Node> node = ReadJsonSchema(texts.expressions(), schema);
  if (!node) return {.error = node.error().message()};
  if (const Status begun = texts.Begin(*node); !begun) return {.error = begun.error().message()};
  return {"", texts.Matches(valid), texts.Matches(invalid)};
}

// Keywords that are obeyed, with a value that is valid and one that is not.
struct Obeyed {
  const char* keywords;
  const char* type;
  const char* valid;
  const char* invalid;
};

constexpr Obeyed kObeyed[] = {
    {R"("enum":[1,2])", "integer", "2", "3"},
    {R"("enum":["a",[1],{"b":2}])", "array", "[1]", "[2]"},
    {R"("const":12345678901234567890)", "integer", "12345678901234567890", "12345678901234567168"},
    {R"("const":{"a":[0.1]})", "object", R"({"a":[0.1]})", R"({"a":[0.2]})"},
    {R"("allOf":[{"minimum":2},{"maximum":4}])", "integer", "3", "5"},
    {R"("anyOf":[{"maximum":2},{"minimum":4}])", "integer", "1", "3"},
    {R"("oneOf":[{"maximum":4},{"minimum":2}])", "integer", "1", "3"},
    {R"("not":{"minimum":3})", "integer", "2", "3"},
    {R"("if":{"minimum":3},"then":{"minimum":5})", "integer", "5", "4"},
    {R"("if":{"minimum":3},"else":{"maximum":0})", "integer", "0", "1"},
    {R"("$ref":"#t","$defs":{"t":{"$anchor":"t","minimum":3}})", "integer", "3", "2"},
    {R"("$ref":"#t","definitions":{"t":{"$dynamicAnchor":"t","minimum":3}})", "integer", "3", "2"},
    {R"("$ref":"#t","$defs":{"t":{"$id":"#t","minimum":3}})", "integer", "3", "2"},
    {R"("minimum":3)", "integer", "3", "2"},
    {R"("maximum":3)", "number", "2.5", "3.5"},
    {R"("exclusiveMinimum":3)", "integer", "4", "3"},
    {R"("exclusiveMaximum":3)", "number", "2.5", "3"},
    {R"("multipleOf":5)", "integer", "15", "12"},
    {R"("pattern":"b")", "string", R"("abc")", R"("ac")"},
    {R"("format":"date")", "string", R"("2024-02-29")", R"("2023-02-29")"},
    {R"("minLength":2)", "string", R"("ab")", R"("a")"},
    {R"("maxLength":2)", "string", R"("ab")", R"("abc")"},
    {R"("prefixItems":[true,{"const":1}])", "array", "[0,1]", "[0,2]"},
    {R"("items":{"const":1})", "array", "[1,1]", "[1,2]"},
    {R"("items":{"const":1},"additionalItems":false)", "array", "[1,1]", "[1,2]"},
    {R"("minItems":2)", "array", "[1,2]", "[1]"},
    {R"("maxItems":2)", "array", "[1,2]", "[1,2,3]"},
    {R"("contains":{"const":1})", "array", "[0,1]", "[0,2]"},
    {R"("contains":{"const":1},"minContains":2)", "array", "[1,1]", "[1,2]"},
    {R"("contains":{"const":1},"maxContains":1)", "array", "[1,2]", "[1,1]"},
    {R"("uniqueItems":true,"maxItems":1)", "array", "[1]", "[1,1]"},
    {R"("properties":{"a":{"const":1}})", "object", R"({"a":1})", R"({"a":2})"},
    {R"("required":["a"])", "object", R"({"a":1})", R"({"b":1})"},
    {R"("additionalProperties":{"const":1})", "object", R"({"a":1})", R"({"a":2})"},
    {R"("properties":{"a":true},"additionalProperties":false)", "object", R"({"a":1})",
     R"({"a":1,"b":2})"},
    {R"("patternProperties":{"^a":{"const":1}})", "object", R"({"ab":1})", R"({"ab":2})"},
    {R"("propertyNames":{"maxLength":1})", "object", R"({"a":1})", R"({"ab":1})"},
    {R"("minProperties":1)", "object", R"({"a":1})", "{}"},
    {R"("maxProperties":1)", "object", R"({"a":1})", R"({"a":1,"b":2})"},
    {R"("dependentRequired":{"a":["b"]})", "object", R"({"b":1})", R"({"a":1})"},
    {R"("dependentSchemas":{"a":{"properties":{"a":{"const":1}}}})", "object", R"({"a":1})",
     R"({"a":2})"},
    {R"("dependencies":{"a":["b"]})", "object", R"({"b":1})", R"({"a":1})"},
    {R"("dependencies":{"a":{"maxProperties":1}})", "object", R"({"a":1})", R"({"a":1,"b":2})"},
};

TEST(SchemaKeywordsTest, AreObeyedEverywhere) {
  int obeyed = 0;
  int refused = 0;
  for (const Obeyed& sample : kObeyed) {
    std::vector<std::string> forms = WithType(sample.keywords, sample.type);
    forms.emplace_back(sample.keywords);
    for (const Position& position : kPositions) {
      if (position.is_name && std::string_view(sample.type) != "string") continue;
      for (const std::string& form : forms) {
        const std::string schema = SchemaAt(position, form);
        if (schema.empty()) continue;
        const Outcome outcome =
            Try(schema, InstanceAt(position, sample.valid), InstanceAt(position, sample.invalid));
        if (!outcome.error.empty()) {
          ++refused;
          EXPECT_TRUE(outcome.error.contains("', which ")) << schema << "\n" << outcome.error;
          continue;
        }
        ++obeyed;
        EXPECT_NE(outcome.is_valid_allowed, position.is_negated) << schema << "\n" << sample.valid;
        EXPECT_EQ(outcome.is_invalid_allowed, position.is_negated) << schema << "\n"
                                                                   << sample.invalid;
      }
    }
  }
  RecordProperty("refused", refused);
  EXPECT_GT(obeyed, 6000);
  EXPECT_LT(refused, obeyed / 20);
}

// What is said about one type does not matter for values of another.
TEST(SchemaKeywordsTest, DecideNothingForOtherTypes) {
  for (const Obeyed& sample : kObeyed) {
    const std::string keywords = sample.keywords;
    if (keywords.starts_with("\"enum") || keywords.starts_with("\"const")) continue;
    for (size_t i = 0; i < std::size(kTypes); ++i) {
      const std::string_view type = kTypes[i];
      const bool is_number = type == "integer" || type == "number";
      const bool is_about_number = *sample.type == 'i' || *sample.type == 'n';
      if (type == sample.type || (is_number && is_about_number)) continue;
      // Only what is about numbers decides something for the numbers in these.
      if (keywords.starts_with("\"not") || keywords.starts_with("\"if") ||
          keywords.starts_with("\"oneOf")) {
        continue;
      }
      const std::string schema = R"({"type":")" + std::string(type) + "\"," + keywords + "}";
      const Outcome outcome = Try(schema, kValues[i], sample.valid);
      EXPECT_EQ(outcome.error, "") << schema;
      EXPECT_TRUE(outcome.is_valid_allowed) << schema << "\n" << kValues[i];
      EXPECT_FALSE(outcome.is_invalid_allowed) << schema << "\n" << sample.valid;
    }
  }
}

constexpr const char* kAnnotations[] = {
    R"("title":"t")",
    R"("description":"d")",
    R"("default":5)",
    R"("examples":[5])",
    R"("deprecated":true)",
    R"("readOnly":true)",
    R"("writeOnly":true)",
    R"("$comment":"c")",
    R"("contentEncoding":"base64")",
    R"("contentMediaType":"text/plain")",
    R"("contentSchema":false)",
    R"("$schema":"https://json-schema.org/draft/2020-12/schema")",
    R"("$vocabulary":{"https://json-schema.org/draft/2020-12/vocab/core":true})",
    R"("$anchor":"here")",
    R"("$dynamicAnchor":"here")",
    R"("$recursiveAnchor":true)",
    R"("$id":"http://x/part")",
    R"("id":"part")",
    R"("$defs":{"x":{"unevaluatedProperties":false}})",
    R"("definitions":{"x":false})",
    R"("format":"unknown")",
    // These decide something only beside `if`, `contains` or a list of `items`.
    R"("then":false)",
    R"("else":false)",
    R"("minContains":5)",
    R"("maxContains":0)",
    R"("additionalItems":false)",
    // Keywords of other languages, and unknown words.
    R"("nullable":true)",
    R"("discriminator":{"propertyName":"p"})",
    R"("unknown":{"unevaluatedProperties":false})",
};

TEST(SchemaKeywordsTest, AnnotationsDecideNothingAnywhere) {
  struct Typed {
    const char* keywords;
    const char* valid;
    const char* invalid;
  };
  constexpr Typed kTyped[] = {
      {R"("const":1)", "1", "2"},
      {R"("type":"integer","minimum":1)", "1", "0"},
      {R"("type":"string","const":"a")", R"("a")", R"("b")"},
      {R"("type":"array","maxItems":1)", "[1]", "[1,2]"},
      {R"("type":"array","prefixItems":[{"const":1}])", "[1,2]", "[2]"},
      {R"("type":"object","required":["a"])", R"({"a":1})", "{}"},
  };
  for (const char* annotation : kAnnotations) {
    for (const Typed& typed : kTyped) {
      for (const Position& position : kPositions) {
        if (position.is_name && *typed.valid != '"') continue;
        const std::string schema =
            SchemaAt(position, annotation + std::string(",") + typed.keywords);
        if (schema.empty()) continue;
        const Outcome outcome =
            Try(schema, InstanceAt(position, typed.valid), InstanceAt(position, typed.invalid));
        EXPECT_EQ(outcome.error, "") << schema;
        EXPECT_NE(outcome.is_valid_allowed, position.is_negated) << schema;
        EXPECT_EQ(outcome.is_invalid_allowed, position.is_negated) << schema;
      }
    }
  }
}

// Keywords that are refused where a value of these types is possible.
struct Refused {
  const char* name;
  const char* keywords;
  std::vector<std::string> types;  // None: all.
};

const Refused kRefused[] = {
    {"unevaluatedItems", R"("unevaluatedItems":false)", {"array"}},
    {"unevaluatedItems", R"("prefixItems":[true],"unevaluatedItems":{"type":"null"})", {"array"}},
    {"unevaluatedProperties", R"("unevaluatedProperties":false)", {"object"}},
    {"unevaluatedProperties",
     R"("properties":{"a":{"const":1}},"unevaluatedProperties":{"type":"null"})",
     {"object"}},
    {"$dynamicRef", R"("$dynamicRef":"#m","$defs":{"m":{"$dynamicAnchor":"m","const":5}})", {}},
    {"$recursiveRef", R"("$recursiveRef":"#")", {}},
    {"$ref", R"("$ref":"http://elsewhere/schema.json")", {}},
    {"$ref", R"("$ref":5)", {}},
    {"propertyDependencies", R"("propertyDependencies":{"a":{"b":false}})", {"object"}},
    {"disallow", R"("disallow":"object")", {}},
    {"extends", R"("extends":{"minimum":3})", {}},
    {"divisibleBy", R"("divisibleBy":2)", {"integer", "number"}},
    {"required", R"("required":true)", {}},
    {"exclusiveMinimum", R"("minimum":1,"exclusiveMinimum":true)", {"integer", "number"}},
    {"exclusiveMaximum", R"("exclusiveMaximum":true)", {"integer", "number"}},
    {"items", R"("items":[{"const":1}],"additionalItems":false)", {"array"}},
    {"uniqueItems", R"("uniqueItems":true)", {"array"}},
    {"uniqueItems", R"("uniqueItems":"yes")", {"array"}},
    {"multipleOf", R"("multipleOf":7)", {"integer", "number"}},
    {"format", R"("format":5)", {"string"}},
    {"type", R"("type":"any")", {}},
};

TEST(SchemaKeywordsTest, AreRefusedByNameEverywhere) {
  for (const Refused& sample : kRefused) {
    const auto expect_refused = [&](const std::string& schema) {
      if (schema.empty()) return;
      const Outcome outcome = Try(schema, "null", "null");
      const std::string words = std::string("has '") + sample.name + "', which ";
      EXPECT_TRUE(outcome.error.contains(words)) << schema << "\n" << outcome.error;
    };
    for (const Position& position : kPositions) {
      const bool is_about_all = sample.types.empty();
      if (position.is_name && !is_about_all && sample.types[0] != "string") continue;
      expect_refused(SchemaAt(position, sample.keywords));
      if (std::string_view(sample.name) == "type") continue;
      for (const char* type : kTypes) {
        if (position.is_name && std::string_view(type) != "string") continue;
        const bool is_about = is_about_all || std::ranges::contains(sample.types, type);
        if (!is_about) continue;
        for (const std::string& form : WithType(sample.keywords, type)) {
          expect_refused(SchemaAt(position, form));
        }
      }
    }
    // A type that such values do not have makes the keyword harmless.
    for (size_t i = 0; i < std::size(kTypes) && !sample.types.empty(); ++i) {
      if (std::ranges::contains(sample.types, kTypes[i])) continue;
      const std::string schema =
          R"({"type":")" + std::string(kTypes[i]) + "\"," + sample.keywords + "}";
      const Outcome outcome = Try(schema, kValues[i], "[[7]]");
      EXPECT_EQ(outcome.error, "") << schema;
      EXPECT_TRUE(outcome.is_valid_allowed) << schema;
    }
  }
}

TEST(SchemaKeywordsTest, TheirTypesAreThoseOfTheirRows) {
  for (const char* name : {"unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "minimum",
                           "dependentSchemas", "dependencies", "title", "unknown"}) {
    const KeywordInfo& info = FindKeyword(name);
    EXPECT_EQ(TypesOfKeyword(info.keyword), info.types) << name;
  }
}

}  // namespace
}  // namespace cria::grammar
