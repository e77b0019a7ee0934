#include "grammar/schema_objects.h"

#include <algorithm>
#include <array>
#include <utility>

#include "grammar/characters.h"
#include "grammar/schema_values.h"

namespace cria::grammar {
namespace {

using jinja::Dict;
using jinja::Entry;
using jinja::Kind;
using jinja::Value;

// Patterns are intersected, which takes time that is exponential in their number.
constexpr size_t kMaxPatterns = 8;
constexpr size_t kMaxNameClasses = 32;

// The entries of an object in the schema; none if the keyword is not there.
std::span<const Entry> EntriesOf(const Dict& schema, std::string_view keyword) {
  const Value* value = jinja::Find(schema.entries, keyword);
  if (value == nullptr || !value->is(Kind::kDict)) return {};
  return value->dict->entries;
}

// Whether properties that `a` names come before those of `b`.
bool IsBefore(const Item& a, const Item& b) {
  const bool a_names = a.keyword == Keyword::kProperties;
  const bool b_names = b.keyword == Keyword::kProperties;
  return a_names != b_names ? a_names : a.order < b.order;
}

}  // namespace

SchemaObjects::SchemaObjects(SchemaTranslator& translator, const Case& found)
    : translator_(translator),
      e_(translator.expressions()),
      names_(translator.text().AnyCharacters()) {
  // Properties that `properties` names come first, then those that must be there.
  std::vector<const Item*> items;
  for (const Item& item : found.items) {
    if (TypesOfKeyword(item.keyword) != kObjectType) continue;
    // There are few, and they are nearly in order.
    size_t place = items.size();
    while (place > 0 && IsBefore(item, *items[place - 1])) --place;
    items.insert(items.begin() + static_cast<ptrdiff_t>(place), &item);
  }
  for (const Item* item : items) Read(*item);
  for (Property& property : properties_) {
    std::vector<Node> matches;
    for (const Node pattern : patterns_) {
      if (Matches(property.literal, pattern)) matches.push_back(pattern);
    }
    for (const Dict* source : sources_) AddTerms(*source, &property.name, matches, &property.terms);
    if (limits_names_ && !Matches(property.literal, names_)) property.is_forbidden = true;
  }
  // Translate makes up to two copies.
  size_t bytes = 0;
  for (const Property& property : properties_) {
    bytes += 3 * (sizeof(Property) + property.terms.capacity() * sizeof(Term));
  }
  held_.emplace(translator_.report(), sources_.empty() ? nullptr : sources_[0], bytes);
}

SchemaObjects::Property& SchemaObjects::PropertyOf(const Value& name) {
  const std::string_view bytes = translator_.index().Bytes(name);
  translator_.report().Charge(nullptr, 1 + properties_.size() / 64);
  for (Property& property : properties_) {
    if (property.name == bytes) return property;
  }
  properties_.push_back({bytes, Literal(e_, bytes, CharacterEncoding::kJsonString)});
  return properties_.back();
}

void SchemaObjects::AddSource(const Dict* schema) {
  if (std::find(sources_.begin(), sources_.end(), schema) == sources_.end()) {
    sources_.push_back(schema);
  }
}

void SchemaObjects::Read(const Item& item) {
  SchemaReport& report = translator_.report();
  switch (item.keyword) {
    case Keyword::kHasProperty: {
      Property& property = PropertyOf(item.value);
      (item.is_negated ? property.is_forbidden : property.is_required) = true;
      return;
    }
    case Keyword::kProperties:
    case Keyword::kPatternProperties:
      if (!item.value.is(Kind::kDict)) {
        return report.FailKeyword(ErrorCode::kUsage, item.schema, NameOfKeyword(item.keyword),
                                  "must be an object");
      }
      if (item.is_negated && item.keyword == Keyword::kProperties) {
        const Entry& entry = item.value.dict->entries[item.part];
        Property& property = PropertyOf(entry.key);
        property.is_required =
            property.is_required ||
            !IsRequired(translator_.index(), *item.schema, translator_.index().Bytes(entry.key));
        property.terms.push_back({entry.value, true});
        return;
      }
      if (item.is_negated) break;
      AddSource(item.schema);
      for (const Entry& entry : item.value.dict->entries) {
        if (item.keyword == Keyword::kProperties) {
          PropertyOf(entry.key);
          continue;
        }
        const Node pattern =
            translator_.scalars().Pattern(entry.key, item.schema, "patternProperties");
        if (std::find(patterns_.begin(), patterns_.end(), pattern) == patterns_.end()) {
          patterns_.push_back(pattern);
        }
      }
      return;
    case Keyword::kAdditionalProperties:
      if (item.is_negated) break;
      return AddSource(item.schema);
    case Keyword::kPropertyNames:
      if (item.is_negated) break;
      names_ = e_.Both(names_, translator_.StringContents(std::array{Term{item.value}}));
      limits_names_ = true;
      return;
    case Keyword::kMinProperties:
    case Keyword::kMaxProperties: {
      const uint32_t count = CountOf(item, report);
      counted_in_ = item.schema;
      const bool is_least = item.keyword == Keyword::kMinProperties;
      if (is_least != item.is_negated) {
        least_ = std::max(least_, item.is_negated && count < kUnbounded ? count + 1 : count);
        if (count == kUnbounded) most_ = 0;  // None has so many.
      } else if (item.is_negated && count == 0) {
        least_ = kUnbounded;  // Fewer than none: nothing.
      } else {
        most_ = std::min(most_, item.is_negated ? count - 1 : count);
      }
      return;
    }
    default:
      return;
  }
  demands_.push_back(&item);
}

bool SchemaObjects::Matches(Node literal, Node names) {
  return !translator_.scalars().IsNothing(e_.Both(literal, names));
}

void SchemaObjects::AddTerms(const Dict& source, const std::string_view* name,
                             std::span<const Node> matches, std::vector<Term>* terms) {
  bool is_named = false;
  if (name != nullptr) {
    for (const Entry& entry : EntriesOf(source, "properties")) {
      if (translator_.index().Bytes(entry.key) != *name) continue;
      terms->push_back({entry.value});
      is_named = true;
    }
  }
  for (const Entry& entry : EntriesOf(source, "patternProperties")) {
    const Node pattern = translator_.scalars().Pattern(entry.key, &source, "patternProperties");
    if (std::find(matches.begin(), matches.end(), pattern) == matches.end()) continue;
    terms->push_back({entry.value});
    is_named = true;
  }
  const Value* additional = jinja::Find(source.entries, "additionalProperties");
  if (!is_named && additional != nullptr) terms->push_back({*additional});
}

SchemaObjects::Demand SchemaObjects::DemandOf(const Item& item) {
  if (item.keyword == Keyword::kPatternProperties) {
    const Entry& entry = item.value.dict->entries[item.part];
    return {translator_.scalars().Pattern(entry.key, item.schema, "patternProperties"),
            {{entry.value, true}}};
  }
  if (item.keyword == Keyword::kPropertyNames) {
    return {translator_.StringContents(std::array{Term{item.value, true}}), {}};
  }
  std::vector<Node> named;
  for (const Entry& entry : EntriesOf(*item.schema, "properties")) {
    named.push_back(
        Literal(e_, translator_.index().Bytes(entry.key), CharacterEncoding::kJsonString));
  }
  for (const Entry& entry : EntriesOf(*item.schema, "patternProperties")) {
    named.push_back(translator_.scalars().Pattern(entry.key, item.schema, "patternProperties"));
  }
  return {e_.Both(translator_.text().AnyCharacters(), e_.Not(e_.Choice(named))),
          {{item.value, true}}};
}

// Divides the names that are left by the patterns that they match.
void SchemaObjects::FindNameClasses(size_t pattern, Node names, std::vector<Node>* matches) {
  SchemaReport& report = translator_.report();
  if (report.failed()) return;
  if (classes_.size() >= kMaxNameClasses || patterns_.size() > kMaxPatterns) {
    return report.FailKeyword(
        ErrorCode::kOutOfRange, sources_[0], "patternProperties",
        "has more than 8 patterns, or patterns that match the same names in too "
        "many combinations");
  }
  if (translator_.scalars().IsNothing(names)) return;
  if (pattern == patterns_.size()) {
    NameClass found = {names, {}};
    for (const Dict* source : sources_) AddTerms(*source, nullptr, *matches, &found.terms);
    classes_.push_back(std::move(found));
    return;
  }
  matches->push_back(patterns_[pattern]);
  FindNameClasses(pattern + 1, e_.Both(names, patterns_[pattern]), matches);
  matches->pop_back();
  FindNameClasses(pattern + 1, e_.Both(names, e_.Not(patterns_[pattern])), matches);
}

void SchemaObjects::FindOthers() {
  Node names = names_;
  if (!properties_.empty()) {
    std::vector<Node> literals;
    literals.reserve(properties_.size());
    for (const Property& property : properties_) literals.push_back(property.literal);
    names = e_.Both(names, e_.Not(e_.Choice(literals)));
  }
  // Objects that are closed need no names.
  const bool is_closed = std::any_of(sources_.begin(), sources_.end(), [](const Dict* source) {
    const Value* additional = jinja::Find(source->entries, "additionalProperties");
    return additional != nullptr && additional->is(Kind::kBool) && !additional->boolean;
  });
  if (is_closed && patterns_.empty()) return;
  std::vector<Node> matches;
  FindNameClasses(0, names, &matches);
  std::vector<Node> members;
  members.reserve(classes_.size());
  for (const NameClass& found : classes_) members.push_back(Member(found.names, found.terms));
  other_ = e_.Choice(members);
}

Node SchemaObjects::Member(Node names, std::span<const Term> terms) {
  const Node value = translator_.Translate(terms);
  if (value == Expressions::kNothing) return value;
  return translator_.text().Member(translator_.text().Quoted(names), value);
}

bool SchemaObjects::IsImpossible(uint32_t depth) {
  for (const Property& property : properties_) {
    if (!property.is_required) continue;
    if (property.is_forbidden) return true;
    if (depth > 0 && translator_.IsImpossible(property.terms, depth - 1)) return true;
  }
  return least_ > most_;
}

Node SchemaObjects::Translate() {
  SchemaReport& report = translator_.report();
  if (demands_.size() > 1) {
    report.FailKeyword(ErrorCode::kUnsupported, demands_[1]->schema,
                       NameOfKeyword(demands_[1]->keyword),
                       "cannot be excluded together with another keyword about any property; a "
                       "const property that differs in the branches of oneOf helps");
  }
  report.Charge(counted_in_, 8 * properties_.size());
  if (report.failed() || least_ > most_) return Expressions::kNothing;
  FindOthers();
  Node node = Expressions::kNothing;
  if (demands_.empty()) {
    node = Build(properties_, Expressions::kNothing);
  } else {
    const Demand demand = DemandOf(*demands_[0]);
    std::vector<Node> options;
    for (size_t i = 0; i < properties_.size(); ++i) {
      if (properties_[i].is_forbidden || !Matches(properties_[i].literal, demand.names)) continue;
      std::vector<Property> properties = properties_;
      properties[i].is_required = true;
      properties[i].terms.insert(properties[i].terms.end(), demand.terms.begin(),
                                 demand.terms.end());
      options.push_back(Build(properties, Expressions::kNothing));
    }
    // Another name. The last member, because a later one with the same name would count instead.
    std::vector<Node> last;
    for (const NameClass& found : classes_) {
      const Node names = e_.Both(found.names, demand.names);
      if (translator_.scalars().IsNothing(names)) continue;
      std::vector<Term> terms = found.terms;
      terms.insert(terms.end(), demand.terms.begin(), demand.terms.end());
      last.push_back(Member(names, terms));
    }
    const Node member = e_.Choice(last);
    if (member != Expressions::kNothing) options.push_back(Build(properties_, member));
    node = e_.Choice(options);
  }
  if (node == Expressions::kNothing && needs_distinct_names_) {
    report.FailKeyword(ErrorCode::kUnsupported, counted_in_, "minProperties",
                       "demands more properties than are named; more under properties help");
  }
  return node;
}

Node SchemaObjects::Build(std::span<const Property> properties, Node last) {
  std::vector<Property> kept(properties.begin(), properties.end());
  std::vector<const Property*> present;
  for (Property& property : kept) {
    if (!property.is_forbidden) property.member = Member(property.literal, property.terms);
    if (property.member != Expressions::kNothing) {
      present.push_back(&property);
    } else if (property.is_required) {
      return Expressions::kNothing;
    }
  }
  return Chain(present, last);
}

// Built from the end. `rest[count]` is what follows when `count` properties have been written, with
// the closing bracket; `start` is what follows when none has.
Node SchemaObjects::Chain(std::span<const Property* const> present, Node last) {
  JsonText& text = translator_.text();
  const size_t size = present.size();
  const auto required = static_cast<uint32_t>(std::count_if(
      present.begin(), present.end(), [](const Property* p) { return p->is_required; }));
  if (required > most_) return Expressions::kNothing;
  const bool is_open = other_ != Expressions::kNothing || last != Expressions::kNothing;
  const bool counts = least_ > required || (most_ < kUnbounded && (is_open || most_ < size));
  const size_t states = counts ? size + 1 : 1;
  translator_.report().Charge(counted_in_, size * states / 16);
  if (translator_.report().failed()) return Expressions::kNothing;

  const Node end = e_.Sequence(text.Space(), e_.Byte('}'));
  const bool has_last = last != Expressions::kNothing;
  // Other members after `count` named ones, each with a comma, and the end.
  const auto others_after = [&](uint32_t count) {
    if (counts && count + (has_last ? 1 : 0) > most_) return Expressions::kNothing;
    uint32_t min = counts && least_ > count ? least_ - count : 0;
    uint32_t max = counts && most_ < kUnbounded ? most_ - count : kUnbounded;
    if (min > 1) {
      needs_distinct_names_ = needs_distinct_names_ || count == size;
      return Expressions::kNothing;
    }
    if (!has_last) return e_.Sequence(e_.Repeat(text.Next(other_), min, max), end);
    if (max < kUnbounded) --max;
    return e_.Sequence(std::array{e_.Repeat(text.Next(other_), 0, max), text.Next(last), end});
  };
  std::vector<Node> rest(states);
  for (uint32_t count = 0; count < states; ++count) rest[count] = others_after(count);

  // Without named members, the first other one has no comma before it.
  Node start = Expressions::kNothing;
  if (!counts || least_ <= 1) {
    const uint32_t more = most_ == kUnbounded || most_ == 0 ? most_ : most_ - 1;
    const bool has_room = most_ > 0;
    std::vector<Node> options;
    if (!has_last && (!counts || least_ == 0)) options.push_back(e_.Byte('}'));
    if (!has_last && has_room) {
      options.push_back(
          e_.Sequence(std::array{other_, e_.Repeat(text.Next(other_), 0, more), end}));
    }
    if (has_last && has_room) {
      options.push_back(e_.Sequence(last, end));
      const uint32_t between = more == kUnbounded || more == 0 ? more : more - 1;
      if (more > 0) {
        options.push_back(e_.Sequence(
            std::array{other_, e_.Repeat(text.Next(other_), 0, between), text.Next(last), end}));
      }
    }
    start = e_.Choice(options);
  } else if (size == 0) {
    needs_distinct_names_ = true;
  }

  for (size_t i = size; i-- > 0;) {
    const Property& property = *present[i];
    const Node member = property.member;
    const Node written = e_.Sequence(member, rest[counts ? 1 : 0]);
    start = property.is_required ? written : e_.Choice(written, start);
    const Node next = text.Next(member);
    for (size_t count = 0; count < states; ++count) {
      const size_t after = counts ? count + 1 : 0;
      const Node with = after < states ? e_.Sequence(next, rest[after]) : Expressions::kNothing;
      rest[count] = property.is_required ? with : e_.Choice(with, rest[count]);
    }
  }
  return e_.Sequence(std::array{e_.Byte('{'), text.Space(), start});
}

}  // namespace cria::grammar
