#include "grammar/schema_cases.h"

#include <string>

#include "grammar/schema_values.h"
#include "jinja/text.h"

namespace cria::grammar {
namespace {

using jinja::Dict;
using jinja::Entry;
using jinja::Kind;
using jinja::Value;

// Whether the schema refers to itself without a value in between: `$ref` alone never says what it
// allows then.
bool IsInside(const Case& open, const Dict* schema, bool is_negated, uint32_t parent) {
  while (parent < open.schemas.size()) {
    const Case::SeenSchema& seen = open.schemas[parent];
    if (seen.schema == schema && seen.is_negated == is_negated) return true;
    parent = seen.parent;
  }
  return false;
}

size_t BytesOf(const Case& open) {
  return (open.items.capacity() + open.branches.capacity()) * sizeof(Item) +
         open.schemas.capacity() * sizeof(Case::SeenSchema);
}

}  // namespace

Item KeywordOf(const Item& schema, Keyword keyword, size_t index) {
  const std::span<const Entry> entries = schema.schema->entries;
  Item item = schema;
  item.keyword = keyword;
  item.value = entries[index].value;
  item.order_size /= entries.size();
  item.order += index * item.order_size;
  return item;
}

bool SchemaCases::Visit(std::span<const Term> terms, Types types, CaseVisitor& visitor) {
  Case open;
  open.types = types;
  const Item root = {.keyword = Keyword::kAllOf, .parent = kNoParent, .order_size = UINT64_MAX};
  for (size_t i = 0; i < terms.size(); ++i) {
    AddSchema(open, terms[i].schema, terms[i].is_negated, root, i, terms.size());
  }
  return Expand(open, 0, visitor);
}

bool SchemaCases::Expand(const Case& open, uint32_t depth, CaseVisitor& visitor) {
  if (report_.failed() || open.types == 0) return true;
  if (open.branches.empty()) return visitor.Visit(open);
  // The newest one, so that a branch that is impossible ends before others are decided.
  const Item item = open.branches.back();
  if (depth > kMaxDepth) {
    report_.Fail(ErrorCode::kOutOfRange, item.schema, "has too many alternatives at one place");
    return false;
  }
  for (size_t i = 0; !report_.failed(); ++i) {
    report_.Charge(item.schema, 1 + (open.items.size() + open.branches.size()) / 4);
    Case next = open;
    next.branches.pop_back();
    if (!AddAlternative(next, item, i)) return true;
    const HeldBytes held(report_, item.schema, BytesOf(next));
    if (!Expand(next, depth + 1, visitor)) return false;
  }
  return false;
}

void SchemaCases::AddItem(std::vector<Item>& items, const Item& item) {
  if (items.size() >= kMaxItems) {
    return report_.Fail(ErrorCode::kOutOfRange, item.schema, "has too many keywords at one place");
  }
  items.push_back(item);
}

void SchemaCases::AddSchema(Case& target, const Value& schema, bool is_negated, const Item& from,
                            size_t index, size_t count) {
  if (report_.failed() || target.types == 0) return;
  if (schema.is(Kind::kBool)) {
    if (schema.boolean == is_negated) target.types = 0;
    return;
  }
  if (!schema.is(Kind::kDict)) {
    return report_.Fail(ErrorCode::kUsage, from.schema,
                        "has something else where a schema, which is an object, true or false, "
                        "is expected");
  }
  if (IsInside(target, schema.dict, is_negated, from.parent)) {
    return report_.Fail(ErrorCode::kUnsupported, schema.dict,
                        "refers to itself before any part of the value is read");
  }
  for (const Case::SeenSchema& seen : target.schemas) {
    if (seen.schema != schema.dict) continue;
    if (seen.is_negated != is_negated) target.types = 0;
    return;
  }
  report_.Charge(schema.dict, 1 + target.schemas.size() / 16);
  const uint32_t depth = from.parent == kNoParent ? 0 : target.schemas[from.parent].depth + 1;
  if (depth > kMaxDepth) {
    return report_.Fail(ErrorCode::kOutOfRange, schema.dict, "is nested too deeply");
  }
  Item item = from;
  item.keyword = Keyword::kSchema;
  item.is_negated = is_negated;
  item.value = schema;
  item.schema = schema.dict;
  item.parent = static_cast<uint32_t>(target.schemas.size());
  item.order_size /= count;
  item.order += index * item.order_size;
  target.schemas.push_back({schema.dict, is_negated, from.parent, depth});
  if (is_negated) {
    AddItem(target.branches, item);
  } else {
    AddKeywords(target, item);
  }
}

void SchemaCases::AddKeywords(Case& target, const Item& schema) {
  const std::span<const Entry> entries = schema.schema->entries;
  // What decides the types comes first, because then fewer alternatives remain.
  for (const bool is_first : {true, false}) {
    for (size_t i = 0; i < entries.size(); ++i) {
      const Keyword keyword = FindKeyword(index_.Bytes(entries[i].key)).keyword;
      const bool decides =
          keyword == Keyword::kType || keyword == Keyword::kConst || keyword == Keyword::kEnum;
      if (keyword == Keyword::kAnnotation || decides != is_first) continue;
      AddKeyword(target, KeywordOf(schema, keyword, i));
    }
  }
}

std::span<const Value> SchemaCases::ListOf(const Item& item) {
  if (item.value.is(Kind::kList)) return item.value.list->items;
  report_.FailKeyword(ErrorCode::kUsage, item.schema, NameOfKeyword(item.keyword),
                      "must be a list");
  return {};
}

void SchemaCases::AddSchemas(Case& target, const Item& item, bool is_negated) {
  const std::span<const Value> schemas = ListOf(item);
  for (size_t i = 0; i < schemas.size(); ++i) {
    AddSchema(target, schemas[i], is_negated, item, i, schemas.size());
  }
}

void SchemaCases::AddKeyword(Case& target, const Item& item) {
  // Draft 3 has `required` in the schema of the property itself, which may have any type.
  if (item.keyword == Keyword::kRequired) ListOf(item);
  const Types types = TypesOfKeyword(item.keyword);
  if (item.is_negated) target.types &= types;
  // What is about other types holds.
  if ((target.types & types) == 0) return;
  if (!IsSupported(item.keyword)) {
    return report_.FailKeyword(ErrorCode::kUnsupported, item.schema, NameOfKeyword(item.keyword),
                               "is not supported");
  }
  switch (item.keyword) {
    case Keyword::kType:
      return AddType(target, item);
    case Keyword::kConst:
      return AddConstant(target, item, item.value);
    case Keyword::kEnum:
      return AddEnum(target, item);
    case Keyword::kRef:
      return AddReference(target, item);
    case Keyword::kNot:
      return AddSchema(target, item.value, !item.is_negated, item);
    case Keyword::kAllOf:
      if (item.is_negated) break;
      return AddSchemas(target, item, false);
    case Keyword::kAnyOf:
      if (!item.is_negated) break;
      return AddSchemas(target, item, true);
    case Keyword::kOneOf:
    case Keyword::kIf:
      break;
    case Keyword::kDependencies:
      if (!item.value.is(Kind::kDict)) {
        return report_.Fail(ErrorCode::kUsage, item.schema, "has dependencies that are no object");
      }
      if (item.is_negated) break;
      for (uint32_t i = 0; i < item.value.dict->entries.size(); ++i) {
        AddItem(target.branches, item);
        target.branches.back().part = i;
      }
      return;
    case Keyword::kRequired:
      return AddRequired(target, item);
    case Keyword::kProperties:
    case Keyword::kPatternProperties:
    case Keyword::kPrefixItems:
    case Keyword::kContains:
      if (item.is_negated) break;
      AddItem(target.items, item);
      return;
    default:
      AddItem(target.items, item);
      return;
  }
  AddItem(target.branches, item);
}

void SchemaCases::AddReference(Case& target, const Item& item) {
  if (!item.value.is(Kind::kString)) {
    return report_.FailKeyword(ErrorCode::kUsage, item.schema, "$ref", "must be a string");
  }
  const std::string_view reference = index_.Bytes(item.value);
  const Value* schema = index_.Resolve(item.schema, reference);
  if (schema == nullptr) {
    std::string problem = "refers to '";
    problem.append(reference).append("', which is not in this schema");
    return report_.FailKeyword(ErrorCode::kUnsupported, item.schema, "$ref", problem);
  }
  AddSchema(target, *schema, item.is_negated, item);
}

void SchemaCases::AddType(Case& target, const Item& item) {
  Types types = 0;
  const std::span<const Value> names =
      item.value.is(Kind::kList) ? item.value.list->items : std::span(&item.value, 1);
  for (const Value& name : names) {
    const Types named = TypesOfName(index_.Bytes(name));
    if (named == 0) {
      return report_.FailKeyword(ErrorCode::kUsage, item.schema, "type",
                                 "must be the name of a type, or a list of such names");
    }
    types |= named;
  }
  target.types &= item.is_negated ? static_cast<Types>(~types) : types;
}

void SchemaCases::AddConstant(Case& target, const Item& item, const Value& value) {
  const Types type = TypeOfValue(value);
  if ((type & (kArrayType | kObjectType)) != 0) {
    return AddSchema(target, SchemaOfConstant(value), item.is_negated, item);
  }
  const bool has_items = (type & (kNumberTypes | kStringType)) != 0;
  if (!item.is_negated) {
    target.types &= type;
  } else if (!has_items) {
    target.types &= static_cast<Types>(~type);
  }
  if (has_items && (target.types & type) != 0) {
    Item constant = item;
    constant.keyword = Keyword::kConst;
    constant.value = value;
    AddItem(target.items, constant);
  }
}

void SchemaCases::AddEnum(Case& target, const Item& item) {
  Types types = 0;
  for (const Value& value : ListOf(item)) {
    types |= TypeOfValue(value);
    if (item.is_negated) AddConstant(target, item, value);
  }
  if (item.is_negated) return;
  target.types &= types;
  if ((target.types & (kArrayType | kObjectType)) != 0) {
    AddItem(target.branches, item);
  } else {
    AddItem(target.items, item);
  }
}

void SchemaCases::AddHasProperty(Case& target, const Item& item, const Value& name,
                                 bool is_negated) {
  if (!name.is(Kind::kString)) {
    return report_.Fail(ErrorCode::kUsage, item.schema,
                        "demands a property whose name is not a string");
  }
  if (!is_negated && (target.types & kObjectType) == 0) return;
  AddItem(target.items, item);
  Item& added = target.items.back();
  added.keyword = Keyword::kHasProperty;
  added.is_negated = is_negated;
  added.value = name;
}

void SchemaCases::AddRequired(Case& target, const Item& item) {
  if (item.is_negated) {
    AddItem(target.branches, item);
    return;
  }
  for (const Value& name : ListOf(item)) AddHasProperty(target, item, name, false);
}

Value SchemaCases::SchemaOfConstant(const Value& constant) {
  const void* key = constant.is(Kind::kDict) ? static_cast<const void*>(constant.dict)
                                             : static_cast<const void*>(constant.list);
  // Looking through 256 of them takes about as long as a step.
  report_.Charge(nullptr, 1 + constants_.size() / 256);
  for (const Constant& known : constants_) {
    if (known.value == key) return known.schema;
  }
  // Values only refer to what they consist of.
  jinja::Growing<Entry> keywords(context_);
  const auto add = [&](std::string_view name, const Value& value) {
    keywords.Add({jinja::Trusted(context_, name), value});
  };
  const bool is_object = constant.is(Kind::kDict);
  const size_t size = is_object ? constant.dict->entries.size() : constant.list->items.size();
  jinja::Growing<Entry> properties(context_);
  jinja::Growing<Value> items(context_);
  for (size_t i = 0; i < size; ++i) {
    jinja::Growing<Entry> part(context_);
    part.Add({jinja::Trusted(context_, "const"),
              is_object ? constant.dict->entries[i].value : constant.list->items[i]});
    const Value part_schema = jinja::MakeDict(context_, part.items());
    if (is_object) properties.Add({constant.dict->entries[i].key, part_schema});
    items.Add(is_object ? constant.dict->entries[i].key : part_schema);
  }
  const Value list = jinja::MakeList(context_, items.items());
  add("type", jinja::Trusted(context_, is_object ? "object" : "array"));
  if (is_object) {
    add("properties", jinja::MakeDict(context_, properties.items()));
    add("required", list);
    add("additionalProperties", jinja::Bool(false));
  } else {
    add("prefixItems", list);
    add("minItems", jinja::Int(static_cast<int64_t>(size)));
    add("maxItems", jinja::Int(static_cast<int64_t>(size)));
  }
  const Value schema = jinja::MakeDict(context_, keywords.items());
  constants_.push_back({key, schema});
  return schema;
}

}  // namespace cria::grammar
