// The alternatives of keywords, of which a case has one.

#include "grammar/schema_cases.h"
#include "grammar/schema_values.h"

namespace cria::grammar {
namespace {

using jinja::Dict;
using jinja::Entry;
using jinja::Kind;
using jinja::Value;

// The only value that a schema allows by `const`, or by `enum` with one value; null if others may
// be allowed.
const Value* ConstantOf(const Value* schema) {
  if (schema == nullptr || !schema->is(Kind::kDict)) return nullptr;
  const Value* constant = jinja::Find(schema->dict->entries, "const");
  if (constant != nullptr) return constant;
  const Value* values = jinja::Find(schema->dict->entries, "enum");
  const bool is_one =
      values != nullptr && values->is(Kind::kList) && values->list->items.size() == 1;
  return is_one ? &values->list->items[0] : nullptr;
}

}  // namespace

bool IsRequired(SchemaIndex& index, const Dict& schema, std::string_view name) {
  const Value* required = jinja::Find(schema.entries, "required");
  if (required == nullptr || !required->is(Kind::kList)) return false;
  for (const Value& other : required->list->items) {
    if (index.Bytes(other) == name) return true;
  }
  return false;
}

bool SchemaCases::HaveDifferentConstants(const Value& one, const Value& other) {
  const Dict* schemas[2] = {};
  const Dict* properties[2] = {};
  for (int i = 0; i < 2; ++i) {
    const Value* schema = i == 0 ? &one : &other;
    if (!schema->is(Kind::kDict)) return false;
    const Value* reference = jinja::Find(schema->dict->entries, "$ref");
    if (reference != nullptr) schema = index_.Resolve(schema->dict, index_.Bytes(*reference));
    if (schema == nullptr || !schema->is(Kind::kDict)) return false;
    schemas[i] = schema->dict;
    const Value* type = jinja::Find(schemas[i]->entries, "type");
    const Value* named = jinja::Find(schemas[i]->entries, "properties");
    if (named == nullptr || !named->is(Kind::kDict)) return false;
    if (type == nullptr || TypesOfName(index_.Bytes(*type)) != kObjectType) return false;
    properties[i] = named->dict;
  }
  for (const Entry& entry : properties[0]->entries) {
    const Value* constant = ConstantOf(&entry.value);
    if (constant == nullptr) continue;
    const std::string_view name = index_.Bytes(entry.key);
    const Value* different = ConstantOf(index_.Member(*properties[1], name));
    if (different == nullptr || !AreDifferent(*constant, *different)) continue;
    if (IsRequired(index_, *schemas[0], name) || IsRequired(index_, *schemas[1], name)) return true;
  }
  return false;
}

bool SchemaCases::AreDifferent(const Value& one, const Value& other) {
  if ((TypeOfValue(one) & TypeOfValue(other)) == 0) return true;
  const std::optional<Decimal> number = DecimalOfValue(one);
  const std::optional<Decimal> other_number = DecimalOfValue(other);
  if (number && other_number) return Compare(*number, *other_number) != 0;
  if (one.is(Kind::kString)) return index_.Bytes(one) != index_.Bytes(other);
  if (one.is(Kind::kList)) {
    const std::span<const Value> items = one.list->items;
    report_.Charge(nullptr, items.size());
    if (items.size() != other.list->items.size()) return true;
    for (size_t i = 0; i < items.size(); ++i) {
      if (AreDifferent(items[i], other.list->items[i])) return true;
    }
  }
  if (one.is(Kind::kDict)) {
    const std::span<const Entry> entries = one.dict->entries;
    report_.Charge(nullptr, entries.size() * (1 + entries.size() / 16));
    if (entries.size() != other.dict->entries.size()) return true;
    for (const Entry& entry : entries) {
      const Value* value = index_.Member(*other.dict, index_.Bytes(entry.key));
      if (value == nullptr || AreDifferent(entry.value, *value)) return true;
    }
  }
  return false;
}

bool SchemaCases::AddAlternative(Case& target, const Item& item, size_t index) {
  switch (item.keyword) {
    case Keyword::kSchema:
      return AddAlternativeOfSchema(target, item, index);
    case Keyword::kAllOf:
    case Keyword::kAnyOf: {
      const std::span<const Value> schemas = ListOf(item);
      if (index >= schemas.size()) return false;
      AddSchema(target, schemas[index], item.is_negated, item, index, schemas.size());
      return true;
    }
    case Keyword::kOneOf:
      return AddAlternativeOfOneOf(target, item, index);
    case Keyword::kIf:
      return AddAlternativeOfIf(target, item, index);
    case Keyword::kEnum:
      return AddAlternativeOfEnum(target, item, index);
    case Keyword::kDependencies:
      return AddAlternativeOfDependency(target, item, index);
    case Keyword::kRequired: {
      // What `properties` has is an alternative of its own, with that the property is missing.
      const Value* properties = jinja::Find(item.schema->entries, "properties");
      const bool has_properties = properties != nullptr && properties->is(Kind::kDict);
      for (const Value& name : ListOf(item)) {
        if (has_properties && index_.Member(*properties->dict, index_.Bytes(name)) != nullptr) {
          continue;
        }
        if (index-- > 0) continue;
        AddHasProperty(target, item, name, true);
        return true;
      }
      return false;
    }
    default:
      break;
  }
  // The negation of these means that one part does not match its schema.
  const size_t parts = item.keyword == Keyword::kContains      ? 2
                       : item.value.is(Kind::kDict)            ? item.value.dict->entries.size()
                       : item.keyword == Keyword::kPrefixItems ? ListOf(item).size()
                                                               : 0;
  if (index >= parts) return false;
  AddItem(target.items, item);
  target.items.back().part = static_cast<uint32_t>(index);
  return true;
}

// A schema does not hold if one of its keywords does not.
bool SchemaCases::AddAlternativeOfSchema(Case& target, const Item& item, size_t index) {
  const std::span<const Entry> entries = item.schema->entries;
  for (size_t i = 0; i < entries.size(); ++i) {
    const Keyword keyword = FindKeyword(index_.Bytes(entries[i].key)).keyword;
    if (keyword == Keyword::kAnnotation || index-- > 0) continue;
    AddKeyword(target, KeywordOf(item, keyword, i));
    return true;
  }
  return false;
}

bool SchemaCases::AddAlternativeOfOneOf(Case& target, const Item& item, size_t index) {
  const std::span<const Value> schemas = ListOf(item);
  const size_t size = schemas.size();
  if (!item.is_negated) {
    if (index >= size) return false;
    AddSchema(target, schemas[index], false, item, index, size);
    for (size_t i = 0; i < size; ++i) {
      if (i == index || target.types == 0 || AreDisjoint(schemas[index], schemas[i])) continue;
      AddSchema(target, schemas[i], true, item, i, size);
    }
    return true;
  }
  // None holds, or two do.
  if (index == 0) {
    AddSchemas(target, item, true);
    return true;
  }
  --index;
  for (size_t i = 0; i < size; ++i) {
    if (index >= size - i - 1) {
      index -= size - i - 1;
      continue;
    }
    AddSchema(target, schemas[i], false, item, i, size);
    AddSchema(target, schemas[i + 1 + index], false, item, i + 1 + index, size);
    return true;
  }
  return false;
}

bool SchemaCases::AddAlternativeOfIf(Case& target, const Item& item, size_t index) {
  if (index > 1) return false;
  const Value* consequence =
      jinja::Find(item.schema->entries, index == 0 ? std::string_view("then") : "else");
  AddSchema(target, item.value, index == 1, item, 0, 3);
  if (consequence != nullptr) {
    AddSchema(target, *consequence, item.is_negated, item, 1 + index, 3);
  } else if (item.is_negated) {
    target.types = 0;
  }
  return true;
}

// The first alternative has all values that are neither arrays nor objects.
bool SchemaCases::AddAlternativeOfEnum(Case& target, const Item& item, size_t index) {
  if (index == 0) {
    target.types &= static_cast<Types>(~(kArrayType | kObjectType));
    AddItem(target.items, item);
    return true;
  }
  for (const Value& value : ListOf(item)) {
    if ((TypeOfValue(value) & (kArrayType | kObjectType)) == 0) continue;
    if (--index > 0) continue;
    AddConstant(target, item, value);
    return true;
  }
  return false;
}

bool SchemaCases::AddAlternativeOfDependency(Case& target, const Item& item, size_t index) {
  const std::span<const Entry> entries = item.value.dict->entries;
  if (!item.is_negated) {
    if (index > 1) return false;
    const Entry& entry = entries[item.part];
    // The first alternative is also for all that are not objects.
    if (index == 1) target.types &= kObjectType;
    AddHasProperty(target, item, entry.key, index == 0);
    if (index == 0) return true;
    if (!entry.value.is(Kind::kList)) {
      AddSchema(target, entry.value, false, item, item.part, entries.size());
      return true;
    }
    for (const Value& name : entry.value.list->items) AddHasProperty(target, item, name, false);
    return true;
  }
  for (const Entry& entry : entries) {
    const size_t size = entry.value.is(Kind::kList) ? entry.value.list->items.size() : 1;
    if (index >= size) {
      index -= size;
      continue;
    }
    AddHasProperty(target, item, entry.key, false);
    if (entry.value.is(Kind::kList)) {
      AddHasProperty(target, item, entry.value.list->items[index], true);
    } else {
      AddSchema(target, entry.value, true, item);
    }
    return true;
  }
  return false;
}

}  // namespace cria::grammar
