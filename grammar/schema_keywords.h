#pragma once

#include <cstdint>
#include <string_view>

namespace cria::grammar {

// The keywords of JSON Schema that decide which values are valid, or where other schemas are.
enum class Keyword : uint8_t {
  kAnnotation,   // Anything else: it decides nothing.
  kSchema,       // No keyword: a whole schema.
  kHasProperty,  // No keyword: one name of `required`.
  kAdditionalProperties,
  kAllOf,
  kAnyOf,
  kConst,
  kContains,
  kDependencies,  // dependentRequired, dependentSchemas, and what both were before.
  kEnum,
  kExclusiveMaximum,
  kExclusiveMinimum,
  kFormat,
  kIf,
  kItems,
  kMaximum,
  kMaxItems,
  kMaxLength,
  kMaxProperties,
  kMinimum,
  kMinItems,
  kMinLength,
  kMinProperties,
  kMultipleOf,
  kNot,
  kOneOf,
  kPattern,
  kPatternProperties,
  kPrefixItems,
  kProperties,
  kPropertyNames,
  kRef,
  kRequired,
  kType,
  kUniqueItems,
  // Refused, also those of other drafts that later drafts replaced.
  kDisallow,
  kDivisibleBy,
  kDynamicRef,
  kExtends,
  kPropertyDependencies,
  kRecursiveRef,
  kUnevaluatedItems,
  kUnevaluatedProperties,
};

inline bool IsSupported(Keyword keyword) { return keyword < Keyword::kDisallow; }

// The values that JSON has, as bits. `true`, `false` and `null` are one bit each, so that constants
// need nothing else.
using Types = uint8_t;
inline constexpr Types kNullType = 1;
inline constexpr Types kTrueType = 2;
inline constexpr Types kFalseType = 4;
inline constexpr Types kWholeType = 8;  // Numbers.
inline constexpr Types kFractionalType = 16;
inline constexpr Types kStringType = 32;
inline constexpr Types kArrayType = 64;
inline constexpr Types kObjectType = 128;
inline constexpr Types kNumberTypes = kWholeType | kFractionalType;
inline constexpr Types kAllTypes = 255;

// What the value of a keyword consists of.
enum class Holds : uint8_t { kNoSchema, kSchema, kSchemaList, kSchemaMap };

struct KeywordInfo {
  const char* name;
  Keyword keyword;
  Types types;  // Values of other types are valid whatever the keyword says.
  Holds holds;
};

// What is known of a keyword; kAnnotation if it is unknown.
const KeywordInfo& FindKeyword(std::string_view name);
// The types that the keyword is about: those in all rows of the table that have it.
Types TypesOfKeyword(Keyword keyword);
const char* NameOfKeyword(Keyword keyword);

// The types with this name in a schema, 0 if there are none.
Types TypesOfName(std::string_view name);

}  // namespace cria::grammar
