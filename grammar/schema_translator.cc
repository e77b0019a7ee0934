#include "grammar/schema_translator.h"

#include <algorithm>
#include <array>

#include "grammar/schema_arrays.h"
#include "grammar/schema_objects.h"

namespace cria::grammar {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

// A level takes some kilobytes of the stack.
constexpr uint32_t kMaxLevels = 100;
// How far two schemas are compared: the property that tells them apart is usually at the top.
constexpr uint32_t kComparedLevels = 3;
// Comparisons that begin within another one.
constexpr uint32_t kMaxComparisons = 8;

bool IsSameTerm(const Term& a, const Term& b) {
  return a.schema.dict == b.schema.dict && a.is_negated == b.is_negated;
}

uint32_t HashOf(std::span<const Term> terms) {
  uint32_t hash = 0;
  for (const Term& term : terms) {
    const auto address = reinterpret_cast<uintptr_t>(term.schema.dict);
    hash += static_cast<uint32_t>(address >> 3) * 2654435761U ^ (term.is_negated ? 77U : 0U);
  }
  return hash;
}

class Translation final : public CaseVisitor {
 public:
  explicit Translation(SchemaTranslator& translator) : translator_(translator) {}

  bool Visit(const Case& found) override {
    Expressions& e = translator_.expressions();
    if ((found.types & kNullType) != 0) options_.push_back(e.Text("null"));
    if ((found.types & kTrueType) != 0) options_.push_back(e.Text("true"));
    if ((found.types & kFalseType) != 0) options_.push_back(e.Text("false"));
    if ((found.types & kNumberTypes) != 0) options_.push_back(translator_.scalars().Numbers(found));
    if ((found.types & kStringType) != 0) {
      options_.push_back(translator_.text().Quoted(translator_.scalars().StringContents(found)));
    }
    if ((found.types & kArrayType) != 0) {
      options_.push_back(SchemaArrays(translator_, found).Translate());
    }
    if ((found.types & kObjectType) != 0) {
      options_.push_back(SchemaObjects(translator_, found).Translate());
    }
    return !translator_.report().failed();
  }
  Node Take() { return translator_.expressions().Choice(options_); }

 private:
  SchemaTranslator& translator_;
  std::vector<Node> options_;
};

class StringTranslation final : public CaseVisitor {
 public:
  explicit StringTranslation(SchemaTranslator& translator) : translator_(translator) {}

  bool Visit(const Case& found) override {
    options_.push_back(translator_.scalars().StringContents(found));
    return true;
  }
  Node Take() { return translator_.expressions().Choice(options_); }

 private:
  SchemaTranslator& translator_;
  std::vector<Node> options_;
};

// Looks for a case that is not certain to be impossible.
class PossibleCase final : public CaseVisitor {
 public:
  PossibleCase(SchemaTranslator& translator, uint32_t depth)
      : translator_(translator), depth_(depth) {}

  bool Visit(const Case& found) override {
    constexpr Types kOther = kNullType | kTrueType | kFalseType | kArrayType;
    is_found_ = (found.types & kOther) != 0 ||
                ((found.types & kNumberTypes) != 0 &&
                 translator_.scalars().Numbers(found) != Expressions::kNothing) ||
                ((found.types & kStringType) != 0 &&
                 translator_.scalars().StringContents(found) != Expressions::kNothing) ||
                ((found.types & kObjectType) != 0 &&
                 !SchemaObjects(translator_, found).IsImpossible(depth_));
    return !is_found_;
  }
  bool is_found() const { return is_found_; }

 private:
  SchemaTranslator& translator_;
  uint32_t depth_;
  bool is_found_ = false;
};

}  // namespace

size_t SchemaTranslator::Find(std::span<const Known> known, std::span<const Term> terms) {
  const uint32_t hash = HashOf(terms);
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].hash != hash || known[i].terms.size() != terms.size()) continue;
    const bool is_same = std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
      return std::any_of(known[i].terms.begin(), known[i].terms.end(),
                         [&](const Term& other) { return IsSameTerm(term, other); });
    });
    if (is_same) return i;
  }
  return known.size();
}

Node SchemaTranslator::Translate(std::span<const Term> given) {
  if (report_.failed()) return Expressions::kNothing;
  std::vector<Term> terms;
  for (const Term& term : given) {
    if (term.schema.is(Kind::kBool)) {
      if (term.schema.boolean == term.is_negated) return Expressions::kNothing;
      continue;
    }
    const auto is_known = [&](const Term& other) { return IsSameTerm(term, other); };
    if (std::none_of(terms.begin(), terms.end(), is_known)) terms.push_back(term);
  }
  if (terms.empty()) return text_.AnyValue();
  // Looking through 256 of those that are known takes about as long as a step.
  report_.Charge(terms[0].schema.is(Kind::kDict) ? terms[0].schema.dict : nullptr,
                 1 + known_.size() / 256);
  if (Find(excluded_, terms) < excluded_.size()) return Expressions::kNothing;
  const size_t self = Find(known_, terms);
  if (self < known_.size()) {
    Known& known = known_[self];
    if (known.is_done) return known.node;
    if (known.rule == Expressions::kNothing) known.rule = e_.NewRule();
    return known.rule;
  }
  const Dict* schema = terms[0].schema.is(Kind::kDict) ? terms[0].schema.dict : nullptr;
  if (++depth_ > kMaxLevels) {
    report_.Fail(ErrorCode::kOutOfRange, schema, "is nested too deeply");
    return Expressions::kNothing;
  }
  known_.push_back({terms, HashOf(terms)});
  Translation translation(*this);
  Visit(terms, kAllTypes, translation);
  Node node = translation.Take();
  --depth_;
  if (!e_.status()) report_.Fail(e_.status().error());
  if (node == Expressions::kNothing && contradiction_ == nullptr) contradiction_ = schema;
  Known& known = known_[self];
  if (known.rule != Expressions::kNothing) {
    e_.Define(known.rule, node);
    if (node != Expressions::kNothing) node = known.rule;
  }
  known.node = node;
  known.is_done = true;
  return node;
}

bool SchemaTranslator::Exclude(Node rule) {
  for (const Known& known : known_) {
    if (known.rule != rule) continue;
    if (contradiction_ == nullptr) contradiction_ = known.terms[0].schema.dict;
    excluded_.push_back(known);
    known_.clear();
    return true;
  }
  return false;
}

Node SchemaTranslator::StringContents(std::span<const Term> terms) {
  StringTranslation translation(*this);
  Visit(terms, kStringType, translation);
  return translation.Take();
}

bool SchemaTranslator::IsImpossible(std::span<const Term> terms, uint32_t depth) {
  PossibleCase possible(*this, depth);
  Visit(terms, kAllTypes, possible);
  return !possible.is_found() && !report_.failed();
}

bool SchemaTranslator::AreDisjoint(const Value& one, const Value& other) {
  report_.Charge(one.is(Kind::kDict) ? one.dict : nullptr, 1 + pairs_.size() / 256);
  if (HaveDifferentConstants(one, other)) return true;
  const bool are_objects = one.is(Kind::kDict) && other.is(Kind::kDict);
  const Dict* low = are_objects ? std::min(one.dict, other.dict) : nullptr;
  const Dict* high = are_objects ? std::max(one.dict, other.dict) : nullptr;
  for (const KnownPair& pair : pairs_) {
    if (are_objects && pair.one == low && pair.other == high) return pair.are_disjoint;
  }
  // Branches may contain the same pair again, also by way of references.
  if (comparisons_ >= kMaxComparisons) return false;
  const size_t self = pairs_.size();
  if (are_objects) pairs_.push_back({low, high, false});
  ++comparisons_;
  const bool are_disjoint = IsImpossible(std::array{Term{one}, Term{other}}, kComparedLevels);
  --comparisons_;
  if (are_objects) pairs_[self].are_disjoint = are_disjoint;
  return are_disjoint;
}

}  // namespace cria::grammar
