#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "grammar/schema_translator.h"

namespace cria::grammar {

// The arrays that a case allows.
class SchemaArrays {
 public:
  SchemaArrays(SchemaTranslator& translator, const Case& found);

  Node Translate();

 private:
  // An item with this index must match the term.
  struct Fixed {
    uint32_t index;
    Term term;
  };
  // From `least` to `most` items from index `from` on must match the term.
  struct Demand {
    Term term;
    uint32_t from;
    uint32_t least;
    uint32_t most;
    const Item* item;
  };

  void Read(const Item& item);
  void ReadContains(const Item& item);
  void ReadUniqueItems(const Item& item);
  // The number of schemas in prefixItems of the schema.
  static uint32_t PrefixSize(const jinja::Dict& schema);
  // What is demanded of the item with this index.
  std::vector<Term> TermsAt(uint32_t index) const;
  Node ItemAt(uint32_t index) { return translator_.Translate(TermsAt(index)); }
  Node WithoutDemand();
  Node WithDemand(const Demand& demand);
  // After the items, of which `count` have been written, the array may end: here, or not at all.
  Node EndAt(uint32_t count) const;

  SchemaTranslator& translator_;
  Expressions& e_;
  std::vector<const jinja::Dict*> sources_;  // With prefixItems or items.
  std::vector<Fixed> fixed_;
  std::vector<Term> all_;  // Demanded of each item.
  std::vector<Demand> demands_;
  const Item* unique_ = nullptr;
  uint32_t prefix_ = 0;  // From this index on, the same is demanded of all items.
  uint32_t least_ = 0;
  uint32_t most_ = kUnbounded;
  Node end_;
};

}  // namespace cria::grammar
