#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/schema_report.h"
#include "grammar/schema_translator.h"

namespace cria::grammar {

// The objects that a case allows: the properties that its schemas name, in their order, then
// others.
//
// An expression cannot see that a name was written before. So the names that are counted by
// minProperties are those that schemas list, and at most one other.
class SchemaObjects {
 public:
  SchemaObjects(SchemaTranslator& translator, const Case& found);

  Node Translate();
  // Whether a property that must be there certainly cannot be.
  bool IsImpossible(uint32_t depth);

 private:
  struct Property {
    std::string_view name;
    Node literal;  // The name as it is written, without quotes.
    bool is_required = false;
    bool is_forbidden = false;
    std::vector<Term> terms = {};
    Node member = Expressions::kNothing;
  };
  // Other names for which the same schemas decide.
  struct NameClass {
    Node names;
    std::vector<Term> terms;
  };
  // One property, whichever, must be among `names` and match `terms`.
  struct Demand {
    Node names;
    std::vector<Term> terms;
  };

  void Read(const Item& item);
  void AddSource(const jinja::Dict* schema);
  Property& PropertyOf(const jinja::Value& name);
  Demand DemandOf(const Item& item);
  // The schemas of `source` for a property. Patterns that match its name are in `matches`; `name`
  // is null if no schema lists it.
  void AddTerms(const jinja::Dict& source, const std::string_view* name,
                std::span<const Node> matches, std::vector<Term>* terms);
  void FindOthers();
  void FindNameClasses(size_t pattern, Node names, std::vector<Node>* matches);
  Node Member(Node names, std::span<const Term> terms);
  // The objects with these properties; `last` must be the last member unless it is kNothing.
  Node Build(std::span<const Property> properties, Node last);
  Node Chain(std::span<const Property* const> present, Node last);
  bool Matches(Node literal, Node names);

  SchemaTranslator& translator_;
  Expressions& e_;
  std::vector<Property> properties_;
  std::vector<const jinja::Dict*> sources_;  // Where the properties' schemas are.
  std::vector<Node> patterns_;
  std::vector<const Item*> demands_;
  Node names_;  // All names that are allowed.
  bool limits_names_ = false;
  std::vector<NameClass> classes_;
  Node other_ = Expressions::kNothing;  // A member with another name.
  uint32_t least_ = 0;
  uint32_t most_ = kUnbounded;
  const jinja::Dict* counted_in_ = nullptr;  // The schema with minProperties.
  bool needs_distinct_names_ = false;
  std::optional<HeldBytes> held_;  // The properties, and copies of them.
};

}  // namespace cria::grammar
