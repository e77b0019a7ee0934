#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/expressions.h"
#include "grammar/json_text.h"
#include "grammar/schema_cases.h"
#include "grammar/schema_scalars.h"

namespace cria::grammar {

// Turns schemas that must hold together into expressions. Values with parts become expressions of
// their parts; a schema that contains itself becomes a rule.
class SchemaTranslator final : private SchemaCases {
 public:
  SchemaTranslator(Expressions& expressions, jinja::Context& context, SchemaIndex& index,
                   SchemaReport& report)
      : SchemaCases(context, index, report),
        e_(expressions),
        text_(expressions),
        scalars_(expressions, text_, index, report) {}

  // The values that match all terms; kNothing if it is certain that there are none.
  Node Translate(std::span<const Term> terms);
  // What is between the quotes of the strings that match all terms.
  Node StringContents(std::span<const Term> terms);
  // Whether it is certain that no value matches all terms, looking into `depth` levels of objects.
  bool IsImpossible(std::span<const Term> terms, uint32_t depth);

  // No value matches the terms of this rule, as each contains another one without end. Forgets what
  // has been translated, so that it can be translated again without them. False if it is no rule
  // of this translator.
  bool Exclude(Node rule);

  // The innermost schema that allows nothing and is not `false` itself, or null: the likely reason
  // if nothing matches in the end.
  const jinja::Dict* contradiction() const { return contradiction_; }

  Expressions& expressions() { return e_; }
  JsonText& text() { return text_; }
  SchemaScalars& scalars() { return scalars_; }
  SchemaIndex& index() { return index_; }
  SchemaReport& report() { return report_; }

 private:
  // What has been translated, so that each conjunction is translated once.
  struct Known {
    std::vector<Term> terms;
    uint32_t hash;  // Does not depend on the order of the terms.
    Node node = Expressions::kNothing;
    Node rule = Expressions::kNothing;
    bool is_done = false;
  };
  struct KnownPair {
    const jinja::Dict* one;
    const jinja::Dict* other;
    bool are_disjoint;
  };

  bool AreDisjoint(const jinja::Value& one, const jinja::Value& other) override;
  // The index in `known`, or its size.
  static size_t Find(std::span<const Known> known, std::span<const Term> terms);

  Expressions& e_;
  JsonText text_;
  SchemaScalars scalars_;
  std::vector<Known> known_;
  std::vector<Known> excluded_;
  std::vector<KnownPair> pairs_;
  const jinja::Dict* contradiction_ = nullptr;
  uint32_t depth_ = 0;
  uint32_t comparisons_ = 0;  // Under way.
};

}  // namespace cria::grammar
