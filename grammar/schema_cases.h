#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/schema_index.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_report.h"
#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::grammar {

// A schema that must hold, or that must not.
struct Term {
  jinja::Value schema;
  bool is_negated = false;
};

// A keyword that must hold, or that must not.
struct Item {
  Keyword keyword;
  bool is_negated;
  // Which part of the keyword must not hold: for `properties`, `patternProperties` and
  // `prefixItems` the index of the schema that the value does not match. For `contains`, see
  // ContainsPart. A property that the same schema requires may also be missing then.
  uint32_t part;
  uint32_t parent;  // The schema it is from, in Case::schemas.
  jinja::Value value;
  const jinja::Dict* schema;
  // Where it is among the others, if references are replaced by what they refer to: each part of
  // a schema has a part of its range, as far as 64 bits suffice.
  uint64_t order;
  uint64_t order_size;
};

// Too few or too many items match if `contains` does not hold.
enum ContainsPart : uint32_t { kTooFew = 0, kTooMany = 1 };

// Keywords that must hold together, without alternatives other than types.
struct Case {
  struct SeenSchema {
    const jinja::Dict* schema;
    bool is_negated;
    uint32_t parent;
    uint32_t depth;
  };

  Types types = kAllTypes;  // 0: nothing can match.
  std::vector<Item> items;
  std::vector<Item> branches;  // Not yet decided.
  std::vector<SeenSchema> schemas;
};

// The keyword with this index in the object of a schema.
Item KeywordOf(const Item& schema, Keyword keyword, size_t index);

// Whether the schema's `required` has the name.
bool IsRequired(SchemaIndex& index, const jinja::Dict& schema, std::string_view name);

class CaseVisitor {
 public:
  // False: no other cases are wanted.
  virtual bool Visit(const Case& found) = 0;

 protected:
  ~CaseVisitor() = default;
};

// Writes the schemas that must hold together as cases of which one must hold: allOf and references
// add keywords to a case, anyOf makes a case of each branch, and what is negated is moved inwards
// (as not (a and b) = not a or not b) until only keywords about one type remain. So `not`, `oneOf`
// and `if` are exact without a complement of objects and arrays.
class SchemaCases {
 public:
  SchemaCases(jinja::Context& context, SchemaIndex& index, SchemaReport& report)
      : context_(context), index_(index), report_(report) {}

  // Visits the cases in which all terms hold for values of these types. A case may be impossible,
  // and cases may overlap. Returns whether the visitor wants more.
  bool Visit(std::span<const Term> terms, Types types, CaseVisitor& visitor);

 protected:
  ~SchemaCases() = default;
  // Whether it is certain that no value matches both schemas; then a case needs not exclude one
  // where the other holds.
  virtual bool AreDisjoint(const jinja::Value& one, const jinja::Value& other) = 0;

  jinja::Context& context_;
  // Whether both schemas want objects, and a property that one of them requires is to have one
  // constant in one of them, and another in the other. Finds most pairs that are disjoint, soon.
  bool HaveDifferentConstants(const jinja::Value& one, const jinja::Value& other);
  // Whether it is certain that the values differ.
  bool AreDifferent(const jinja::Value& one, const jinja::Value& other);

  SchemaIndex& index_;
  SchemaReport& report_;

 private:
  // So that the stack suffices. Schemas of 100 levels are read.
  static constexpr uint32_t kMaxDepth = 200;
  static constexpr uint32_t kNoParent = UINT32_MAX;
  // In each list of a case, which is copied for each alternative.
  static constexpr size_t kMaxItems = 8192;

  struct Constant {
    const void* value;
    jinja::Value schema;
  };

  bool Expand(const Case& open, uint32_t depth, CaseVisitor& visitor);
  // Adds an item to a list of a case. If the list is full, it stays as it is, and reading fails.
  void AddItem(std::vector<Item>& items, const Item& item);
  // Adds a schema that is part `index` of `count` parts of the keyword.
  void AddSchema(Case& target, const jinja::Value& schema, bool is_negated, const Item& from,
                 size_t index = 0, size_t count = 1);
  void AddSchemas(Case& target, const Item& item, bool is_negated);
  void AddKeyword(Case& target, const Item& item);
  void AddReference(Case& target, const Item& item);
  void AddType(Case& target, const Item& item);
  void AddConstant(Case& target, const Item& item, const jinja::Value& value);
  void AddEnum(Case& target, const Item& item);
  void AddRequired(Case& target, const Item& item);
  // Adds the alternative with this index; false if there are no more.
  bool AddAlternative(Case& target, const Item& item, size_t index);
  bool AddAlternativeOfSchema(Case& target, const Item& item, size_t index);
  bool AddAlternativeOfOneOf(Case& target, const Item& item, size_t index);
  bool AddAlternativeOfIf(Case& target, const Item& item, size_t index);
  bool AddAlternativeOfEnum(Case& target, const Item& item, size_t index);
  bool AddAlternativeOfDependency(Case& target, const Item& item, size_t index);
  void AddHasProperty(Case& target, const Item& item, const jinja::Value& name, bool is_negated);
  void AddKeywords(Case& target, const Item& schema);

  // The items of a keyword's list; fails unless it is one.
  std::span<const jinja::Value> ListOf(const Item& item);
  // A schema that only this array or object matches.
  jinja::Value SchemaOfConstant(const jinja::Value& constant);

  std::vector<Constant> constants_;
};

}  // namespace cria::grammar
