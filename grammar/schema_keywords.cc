#include "grammar/schema_keywords.h"

#include <array>

namespace cria::grammar {
namespace {

constexpr KeywordInfo kUnknownKeyword = {"", Keyword::kAnnotation, kAllTypes, Holds::kNoSchema};

constexpr KeywordInfo kKeywords[] = {
    {"type", Keyword::kType, kAllTypes, Holds::kNoSchema},
    {"properties", Keyword::kProperties, kObjectType, Holds::kSchemaMap},
    {"required", Keyword::kRequired, kObjectType, Holds::kNoSchema},
    {"additionalProperties", Keyword::kAdditionalProperties, kObjectType, Holds::kSchema},
    {"items", Keyword::kItems, kArrayType, Holds::kSchema},
    {"enum", Keyword::kEnum, kAllTypes, Holds::kNoSchema},
    {"const", Keyword::kConst, kAllTypes, Holds::kNoSchema},
    {"$ref", Keyword::kRef, kAllTypes, Holds::kNoSchema},
    {"$defs", Keyword::kAnnotation, kAllTypes, Holds::kSchemaMap},
    {"definitions", Keyword::kAnnotation, kAllTypes, Holds::kSchemaMap},
    {"allOf", Keyword::kAllOf, kAllTypes, Holds::kSchemaList},
    {"anyOf", Keyword::kAnyOf, kAllTypes, Holds::kSchemaList},
    {"oneOf", Keyword::kOneOf, kAllTypes, Holds::kSchemaList},
    {"not", Keyword::kNot, kAllTypes, Holds::kSchema},
    {"if", Keyword::kIf, kAllTypes, Holds::kSchema},
    {"then", Keyword::kAnnotation, kAllTypes, Holds::kSchema},
    {"else", Keyword::kAnnotation, kAllTypes, Holds::kSchema},
    {"minimum", Keyword::kMinimum, kNumberTypes, Holds::kNoSchema},
    {"maximum", Keyword::kMaximum, kNumberTypes, Holds::kNoSchema},
    {"exclusiveMinimum", Keyword::kExclusiveMinimum, kNumberTypes, Holds::kNoSchema},
    {"exclusiveMaximum", Keyword::kExclusiveMaximum, kNumberTypes, Holds::kNoSchema},
    {"multipleOf", Keyword::kMultipleOf, kNumberTypes, Holds::kNoSchema},
    {"pattern", Keyword::kPattern, kStringType, Holds::kNoSchema},
    {"format", Keyword::kFormat, kStringType, Holds::kNoSchema},
    {"minLength", Keyword::kMinLength, kStringType, Holds::kNoSchema},
    {"maxLength", Keyword::kMaxLength, kStringType, Holds::kNoSchema},
    {"prefixItems", Keyword::kPrefixItems, kArrayType, Holds::kSchemaList},
    {"minItems", Keyword::kMinItems, kArrayType, Holds::kNoSchema},
    {"maxItems", Keyword::kMaxItems, kArrayType, Holds::kNoSchema},
    {"contains", Keyword::kContains, kArrayType, Holds::kSchema},
    {"uniqueItems", Keyword::kUniqueItems, kArrayType, Holds::kNoSchema},
    {"minProperties", Keyword::kMinProperties, kObjectType, Holds::kNoSchema},
    {"maxProperties", Keyword::kMaxProperties, kObjectType, Holds::kNoSchema},
    {"patternProperties", Keyword::kPatternProperties, kObjectType, Holds::kSchemaMap},
    {"propertyNames", Keyword::kPropertyNames, kObjectType, Holds::kSchema},
    {"dependentRequired", Keyword::kDependencies, kObjectType, Holds::kNoSchema},
    {"dependentSchemas", Keyword::kDependencies, kObjectType, Holds::kSchemaMap},
    {"dependencies", Keyword::kDependencies, kObjectType, Holds::kSchemaMap},
    {"unevaluatedItems", Keyword::kUnevaluatedItems, kArrayType, Holds::kSchema},
    {"unevaluatedProperties", Keyword::kUnevaluatedProperties, kObjectType, Holds::kSchema},
    {"$dynamicRef", Keyword::kDynamicRef, kAllTypes, Holds::kNoSchema},
    {"$recursiveRef", Keyword::kRecursiveRef, kAllTypes, Holds::kNoSchema},
    {"propertyDependencies", Keyword::kPropertyDependencies, kObjectType, Holds::kNoSchema},
    {"disallow", Keyword::kDisallow, kAllTypes, Holds::kNoSchema},
    {"extends", Keyword::kExtends, kAllTypes, Holds::kNoSchema},
    {"divisibleBy", Keyword::kDivisibleBy, kNumberTypes, Holds::kNoSchema},
    {"contentSchema", Keyword::kAnnotation, kAllTypes, Holds::kSchema},
};

// Otherwise, a schema's `type` could hide what a row with other types is about.
consteval bool HaveRowsTheSameTypes() {
  for (const KeywordInfo& one : kKeywords) {
    for (const KeywordInfo& other : kKeywords) {
      if (one.keyword == other.keyword && one.types != other.types) return false;
    }
  }
  return true;
}
static_assert(HaveRowsTheSameTypes());

struct NamedTypes {
  std::string_view name;
  Types types;
};

constexpr NamedTypes kTypeNames[] = {
    {"string", kStringType}, {"object", kObjectType},  {"array", kArrayType},
    {"integer", kWholeType}, {"number", kNumberTypes}, {"boolean", kTrueType | kFalseType},
    {"null", kNullType},
};

}  // namespace

const KeywordInfo& FindKeyword(std::string_view name) {
  for (const KeywordInfo& info : kKeywords) {
    if (name == info.name) return info;
  }
  return kUnknownKeyword;
}

Types TypesOfKeyword(Keyword keyword) {
  if (keyword == Keyword::kHasProperty) return kObjectType;
  for (const KeywordInfo& info : kKeywords) {
    if (keyword == info.keyword) return info.types;
  }
  return kAllTypes;
}

const char* NameOfKeyword(Keyword keyword) {
  for (const KeywordInfo& info : kKeywords) {
    if (keyword == info.keyword) return info.name;
  }
  return "";
}

Types TypesOfName(std::string_view name) {
  for (const NamedTypes& type : kTypeNames) {
    if (name == type.name) return type.types;
  }
  return 0;
}

}  // namespace cria::grammar
