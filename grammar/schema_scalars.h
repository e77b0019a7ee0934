#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/json_text.h"
#include "grammar/number_ranges.h"
#include "grammar/schema_cases.h"

namespace cria::grammar {

// The numbers and strings that a case allows. What several keywords demand is intersected; what
// must not hold is a complement, so that the result is exact.
class SchemaScalars {
 public:
  SchemaScalars(Expressions& expressions, JsonText& text, SchemaIndex& index, SchemaReport& report)
      : e_(expressions), text_(text), index_(index), report_(report) {}

  // Numbers of the case's types. kNothing if it is certain that there are none.
  Node Numbers(const Case& found);
  // What is between the quotes of a string. kNothing if it is certain that there is none.
  Node StringContents(const Case& found);

  // What is between the quotes of a string in which the pattern is found.
  Node Pattern(const jinja::Value& pattern, const jinja::Dict* schema, std::string_view keyword);
  // Fails if a keyword demanded numbers that are longer than JsonText writes them: the likely
  // reason if nothing matches in the end.
  void FailBeyondDigits();
  // As expressions.IsNothing, but if that is too much work, it is not certain: false.
  bool IsNothing(Node node);

 private:
  struct KnownPattern {
    const jinja::Text* text;
    Node node;
  };
  struct KnownNothing {
    Node node;
    bool is_nothing;
  };
  // What has been demanded so far.
  struct Demands {
    Node node = Expressions::kNothing;
    bool is_any = true;        // Nothing has been demanded.
    bool is_combined = false;  // So `node` may match nothing without being kNothing.
  };

  void Demand(Demands& demands, Node node, bool is_negated, Node all);
  void AddBound(const Item& item, Bound* lower, Bound* upper);
  Node Multiples(const Item& item);
  Node Values(const Item& item, Types types);
  Node Format(const Item& item);

  Expressions& e_;
  JsonText& text_;
  SchemaIndex& index_;
  SchemaReport& report_;
  std::vector<KnownPattern> patterns_;
  std::vector<KnownNothing> known_;
  std::optional<Item> beyond_;
};

}  // namespace cria::grammar
