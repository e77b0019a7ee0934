#include "grammar/schema_arrays.h"

#include <algorithm>
#include <array>

#include "grammar/schema_values.h"

namespace cria::grammar {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

// With `contains`, each number of items and of matches is a state of its own.
constexpr uint32_t kMaxCountedItems = 256;

// The value of minContains or maxContains beside `contains`.
uint32_t ContainsLimit(const Item& item, std::string_view name, uint32_t otherwise,
                       SchemaReport& report) {
  const Value* value = jinja::Find(item.schema->entries, name);
  if (value == nullptr) return otherwise;
  Item limit = item;
  limit.value = *value;
  return CountOf(limit, report);
}

}  // namespace

SchemaArrays::SchemaArrays(SchemaTranslator& translator, const Case& found)
    : translator_(translator),
      e_(translator.expressions()),
      end_(e_.Sequence(translator.text().Space(), e_.Byte(']'))) {
  for (const Item& item : found.items) {
    if (TypesOfKeyword(item.keyword) == kArrayType) Read(item);
  }
}

uint32_t SchemaArrays::PrefixSize(const Dict& schema) {
  const Value* prefix = jinja::Find(schema.entries, "prefixItems");
  if (prefix == nullptr || !prefix->is(Kind::kList)) return 0;
  return static_cast<uint32_t>(prefix->list->items.size());
}

void SchemaArrays::Read(const Item& item) {
  SchemaReport& report = translator_.report();
  switch (item.keyword) {
    case Keyword::kPrefixItems:
    case Keyword::kItems:
      if (item.keyword == Keyword::kPrefixItems && !item.value.is(Kind::kList)) {
        return report.FailKeyword(ErrorCode::kUsage, item.schema, "prefixItems", "must be a list");
      }
      if (item.keyword == Keyword::kItems && item.value.is(Kind::kList)) {
        return report.FailKeyword(ErrorCode::kUnsupported, item.schema, "items",
                                  "is a list, which is called prefixItems in draft 2020-12");
      }
      if (!item.is_negated) {
        if (std::find(sources_.begin(), sources_.end(), item.schema) == sources_.end()) {
          sources_.push_back(item.schema);
          prefix_ = std::max(prefix_, PrefixSize(*item.schema));
        }
      } else if (item.keyword == Keyword::kPrefixItems) {
        fixed_.push_back({item.part, {item.value.list->items[item.part], true}});
        prefix_ = std::max(prefix_, item.part + 1);
        least_ = std::max(least_, item.part + 1);
      } else {
        const uint32_t from = PrefixSize(*item.schema);
        demands_.push_back({{item.value, true}, from, 1, kUnbounded, &item});
      }
      return;
    case Keyword::kMinItems:
    case Keyword::kMaxItems: {
      const uint32_t count = CountOf(item, report);
      const bool is_least = item.keyword == Keyword::kMinItems;
      if (is_least != item.is_negated) {
        least_ = std::max(least_, item.is_negated && count < kUnbounded ? count + 1 : count);
        if (count == kUnbounded) most_ = 0;  // None has so many.
      } else if (item.is_negated && count == 0) {
        least_ = kUnbounded;  // Fewer than none: nothing.
        most_ = 0;
      } else {
        most_ = std::min(most_, item.is_negated ? count - 1 : count);
      }
      return;
    }
    case Keyword::kContains:
      return ReadContains(item);
    case Keyword::kUniqueItems:
      return ReadUniqueItems(item);
    default:
      return;
  }
}

void SchemaArrays::ReadContains(const Item& item) {
  uint32_t least = ContainsLimit(item, "minContains", 1, translator_.report());
  uint32_t most = ContainsLimit(item, "maxContains", kUnbounded, translator_.report());
  if (item.is_negated && item.part == kTooFew) {
    if (least == 0) {
      most_ = 0;
      least_ = kUnbounded;  // Nothing.
      return;
    }
    most = least - 1;
    least = 0;
  } else if (item.is_negated) {
    if (most == kUnbounded) {
      most_ = 0;
      least_ = kUnbounded;
      return;
    }
    least = most + 1;
    most = kUnbounded;
  }
  if (most == 0 && least == 0) {
    all_.push_back({item.value, true});
  } else if (least > 0 || most < kUnbounded) {
    demands_.push_back({{item.value}, 0, least, most, &item});
  }
}

void SchemaArrays::ReadUniqueItems(const Item& item) {
  if (!item.value.is(Kind::kBool)) {
    return translator_.report().FailKeyword(ErrorCode::kUsage, item.schema, "uniqueItems",
                                            "must be true or false");
  }
  if (item.value.boolean) {
    unique_ = &item;
  } else if (item.is_negated) {
    most_ = 0;
    least_ = kUnbounded;  // Nothing, as it always holds.
  }
}

std::vector<Term> SchemaArrays::TermsAt(uint32_t index) const {
  std::vector<Term> terms;
  for (const Dict* source : sources_) {
    if (index < PrefixSize(*source)) {
      const Value* prefix = jinja::Find(source->entries, "prefixItems");
      terms.push_back({prefix->list->items[index]});
    } else if (const Value* items = jinja::Find(source->entries, "items")) {
      terms.push_back({*items});
    }
  }
  for (const Fixed& fixed : fixed_) {
    if (fixed.index == index) terms.push_back(fixed.term);
  }
  terms.insert(terms.end(), all_.begin(), all_.end());
  return terms;
}

Node SchemaArrays::Translate() {
  SchemaReport& report = translator_.report();
  if (least_ > most_) return Expressions::kNothing;
  if (unique_ != nullptr && (unique_->is_negated || most_ > 1)) {
    report.FailKeyword(ErrorCode::kUnsupported, unique_->schema, "uniqueItems",
                       "is supported only where maxItems is at most 1");
  }
  if (demands_.size() > 1) {
    const Item& item = *demands_[1].item;
    report.FailKeyword(ErrorCode::kUnsupported, item.schema, NameOfKeyword(item.keyword),
                       "cannot be combined with another demand on some items");
  }
  if (report.failed()) return Expressions::kNothing;
  const Node start = demands_.empty() ? WithoutDemand() : WithDemand(demands_[0]);
  return e_.Sequence(std::array{e_.Byte('['), translator_.text().Space(), start});
}

Node SchemaArrays::EndAt(uint32_t count) const {
  if (count < least_) return Expressions::kNothing;
  return count == 0 ? e_.Byte(']') : end_;
}

Node SchemaArrays::WithoutDemand() {
  JsonText& text = translator_.text();
  std::vector<Node> items;
  for (uint32_t i = 0; i < std::min(prefix_, most_); ++i) {
    items.push_back(ItemAt(i));
    if (items.back() == Expressions::kNothing) most_ = i;
  }
  if (least_ > most_) return Expressions::kNothing;
  const auto size = std::min(static_cast<uint32_t>(items.size()), most_);
  const Node item = most_ > size ? ItemAt(prefix_) : Expressions::kNothing;
  // What follows `size` items, or one item if no prefix is demanded.
  const uint32_t written = std::max<uint32_t>(size, 1);
  const uint32_t min = least_ > written ? least_ - written : 0;
  const uint32_t max = most_ == kUnbounded ? most_ : most_ - std::min(written, most_);
  Node rest = e_.Sequence(e_.Repeat(text.Next(item), min, max), end_);
  if (size == 0) {
    const Node some = most_ == 0 ? Expressions::kNothing : e_.Sequence(item, rest);
    return e_.Choice(some, EndAt(0));
  }
  for (uint32_t i = size; i-- > 1;)
    rest = e_.Choice(e_.Sequence(text.Next(items[i]), rest), EndAt(i));
  return e_.Choice(e_.Sequence(items[0], rest), EndAt(0));
}

// Built from the end: rest[matches] is what follows `i` items, of which so many match the demand's
// term, or more, if there is no upper limit.
Node SchemaArrays::WithDemand(const Demand& demand) {
  JsonText& text = translator_.text();
  const bool has_most = demand.most < kUnbounded;
  const uint32_t top = has_most ? demand.most : demand.least;
  uint32_t size = std::max({prefix_, demand.from, least_, uint32_t{1}});
  if (most_ < kUnbounded) size = most_;
  if (size > kMaxCountedItems || top > kMaxCountedItems) {
    translator_.report().FailKeyword(ErrorCode::kOutOfRange, demand.item->schema,
                                     NameOfKeyword(demand.item->keyword),
                                     "is supported for counts up to 256");
    return Expressions::kNothing;
  }
  translator_.report().Charge(demand.item->schema, size * (top + 1) / 16);
  // Items that count, and items that do not.
  const auto hit_at = [&](uint32_t i) {
    if (i < demand.from) return Expressions::kNothing;
    std::vector<Term> terms = TermsAt(i);
    terms.push_back(demand.term);
    return translator_.Translate(terms);
  };
  const auto miss_at = [&](uint32_t i) {
    std::vector<Term> terms = TermsAt(i);
    if (has_most && i >= demand.from)
      terms.push_back({demand.term.schema, !demand.term.is_negated});
    return translator_.Translate(terms);
  };
  std::vector<Node> rest(top + 1, Expressions::kNothing);
  const Node hit = text.Next(hit_at(size));
  const Node misses = e_.Repeat(text.Next(miss_at(size)), 0, kUnbounded);
  for (uint32_t matches = 0; matches <= top; ++matches) {
    const uint32_t min = demand.least > matches ? demand.least - matches : 0;
    const uint32_t max = has_most ? demand.most - matches : min;
    if (most_ == kUnbounded) {
      rest[matches] =
          e_.Sequence(std::array{misses, e_.Repeat(e_.Sequence(hit, misses), min, max), end_});
    } else if (min == 0) {
      rest[matches] = EndAt(size);
    }
  }
  for (uint32_t i = size; i-- > 0;) {
    const Node hit_here = i == 0 ? hit_at(i) : text.Next(hit_at(i));
    const Node miss_here = i == 0 ? miss_at(i) : text.Next(miss_at(i));
    for (uint32_t matches = 0; matches <= top; ++matches) {
      const uint32_t after = std::min(matches + 1, top);
      const bool may_match = !has_most || matches < top;
      const Node end = matches >= demand.least ? EndAt(i) : Expressions::kNothing;
      rest[matches] = e_.Choice(
          std::array{end, e_.Sequence(miss_here, rest[matches]),
                     may_match ? e_.Sequence(hit_here, rest[after]) : Expressions::kNothing});
    }
  }
  return rest[0];
}

}  // namespace cria::grammar
