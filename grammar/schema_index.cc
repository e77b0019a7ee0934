#include "grammar/schema_index.h"

#include <algorithm>
#include <charconv>

#include "grammar/schema_keywords.h"
#include "grammar/schema_uri.h"
#include "jinja/text.h"

namespace cria::grammar {
namespace {

using jinja::Dict;
using jinja::Kind;
using jinja::Value;

// A name as a step of a JSON pointer.
std::string Escaped(std::string_view name) {
  std::string escaped;
  for (const char byte : name) {
    if (byte == '~') {
      escaped += "~0";
    } else if (byte == '/') {
      escaped += "~1";
    } else {
      escaped += byte;
    }
  }
  return escaped;
}

// The reverse.
std::string Unescaped(std::string_view step) {
  std::string name;
  for (size_t i = 0; i < step.size(); ++i) {
    const bool is_escape = step[i] == '~' && i + 1 < step.size();
    if (is_escape) ++i;
    name += !is_escape ? step[i] : step[i] == '1' ? '/' : '~';
  }
  return name;
}

}  // namespace

SchemaIndex::SchemaIndex(jinja::Context& context, const Value& root)
    : context_(context), root_(root) {
  resources_.push_back({"", &root_});
  if (root.is(Kind::kDict)) {
    const Value* draft = jinja::Find(root.dict->entries, "$schema");
    const std::string_view uri = draft == nullptr ? std::string_view() : Bytes(*draft);
    has_old_ids_ = uri.contains("/draft-03/") || uri.contains("/draft-04/");
  }
  Walk(root_, {nullptr, kNone, 0, {}, {}, kNone, false});
}

std::string_view SchemaIndex::Bytes(const Value& value) {
  return value.is(Kind::kString) ? jinja::Flat(context_, *value.text) : std::string_view();
}

void SchemaIndex::Walk(const Value& schema, Position position) {
  if (!schema.is(Kind::kDict) || context_.failed()) return;
  if (positions_.size() == kMaxSchemas) return context_.Fail("there are too many schemas");
  const Dict& dict = *schema.dict;
  position.schema = schema.dict;
  const Value* id = jinja::Find(dict.entries, "$id");
  if (id == nullptr && has_old_ids_) id = jinja::Find(dict.entries, "id");
  const std::string_view reference = id == nullptr ? std::string_view() : Bytes(*id);
  if (reference.size() > 1 && reference.starts_with('#')) {
    // An anchor of the drafts until 7.
    anchors_.push_back({reference.substr(1), position.resource, &schema});
  } else if (id != nullptr && id->is(Kind::kString)) {
    const std::string_view uri =
        jinja::Copy(context_, ResolveUri(resources_[position.resource].uri, reference));
    if (position.parent == kNone && &schema == &root_) {
      resources_[0].uri = uri;
    } else {
      position.resource = static_cast<uint32_t>(resources_.size());
      resources_.push_back({uri, &schema});
    }
  }
  const auto self = static_cast<uint32_t>(positions_.size());
  AddPosition(position);
  for (const jinja::Entry& entry : dict.entries) {
    const std::string_view name = Bytes(entry.key);
    if (name == "$anchor" || name == "$dynamicAnchor") {
      anchors_.push_back({Bytes(entry.value), position.resource, &schema});
      continue;
    }
    const Holds holds = FindKeyword(name).holds;
    if (holds == Holds::kNoSchema) continue;
    Position part = {nullptr, self, position.resource, name, {}, kNone, holds == Holds::kSchemaMap};
    if (holds == Holds::kSchema) {
      Walk(entry.value, part);
    } else if (holds == Holds::kSchemaMap && entry.value.is(Kind::kDict)) {
      for (const jinja::Entry& inner : entry.value.dict->entries) {
        part.name = Bytes(inner.key);
        Walk(inner.value, part);
      }
    } else if (holds == Holds::kSchemaList && entry.value.is(Kind::kList)) {
      part.index = 0;
      for (const Value& inner : entry.value.list->items) {
        Walk(inner, part);
        ++part.index;
      }
    }
  }
}

void SchemaIndex::AddPosition(const Position& position) {
  positions_.push_back(position);
  if (2 * positions_.size() >= slots_.size()) {
    slots_.assign(std::max<size_t>(64, 2 * slots_.size()), kNone);
    for (uint32_t i = 0; i < positions_.size(); ++i) slots_[SlotOf(positions_[i].schema)] = i;
  } else {
    slots_[SlotOf(position.schema)] = static_cast<uint32_t>(positions_.size() - 1);
  }
}

size_t SchemaIndex::SlotOf(const Dict* schema) const {
  // Objects are at multiples of 8.
  size_t slot = (reinterpret_cast<uintptr_t>(schema) >> 3) * size_t{2654435761U};
  for (;; ++slot) {
    slot &= slots_.size() - 1;
    if (slots_[slot] == kNone || positions_[slots_[slot]].schema == schema) return slot;
  }
}

uint32_t SchemaIndex::Find(const Dict* schema) const {
  return slots_.empty() ? kNone : slots_[SlotOf(schema)];
}

const Value* SchemaIndex::Member(const Dict& object, std::string_view name) {
  for (const jinja::Entry& entry : object.entries) {
    if (Bytes(entry.key) == name) return &entry.value;
  }
  return nullptr;
}

const Value* SchemaIndex::Resolve(const Dict* from, std::string_view reference) {
  const uint32_t position = Find(from);
  uint32_t resource = position == kNone ? 0 : positions_[position].resource;
  const size_t hash = std::min(reference.find('#'), reference.size());
  if (hash > 0) {
    const std::string uri = ResolveUri(resources_[resource].uri, reference);
    const auto found = std::find_if(resources_.begin(), resources_.end(),
                                    [&uri](const Resource& other) { return other.uri == uri; });
    if (found == resources_.end()) return nullptr;
    resource = static_cast<uint32_t>(found - resources_.begin());
  }
  if (hash + 1 >= reference.size()) return resources_[resource].root;
  const std::string fragment = PercentDecoded(reference.substr(hash + 1));
  if (fragment.starts_with('/')) return Follow(resource, fragment);
  for (const Anchor& anchor : anchors_) {
    if (anchor.resource == resource && anchor.name == fragment) return anchor.schema;
  }
  return nullptr;
}

const Value* SchemaIndex::Follow(uint32_t resource, std::string_view pointer) {
  const Value* value = resources_[resource].root;
  for (std::string_view rest = pointer; !rest.empty();) {
    const size_t end = std::min(rest.find('/', 1), rest.size());
    const std::string step = Unescaped(rest.substr(1, end - 1));
    rest.remove_prefix(end);
    if (value->is(Kind::kDict)) {
      value = Member(*value->dict, step);
    } else if (value->is(Kind::kList)) {
      size_t index = 0;
      const char* const last = step.data() + step.size();
      const auto read = std::from_chars(step.data(), last, index);
      const bool is_there =
          read.ec == std::errc() && read.ptr == last && index < value->list->items.size();
      value = is_there ? &value->list->items[index] : nullptr;
    } else {
      value = nullptr;
    }
    if (value == nullptr) return nullptr;
  }
  // It may be where no schema is expected, such as in an unknown keyword.
  if (value->is(Kind::kDict) && Find(value->dict) == kNone) {
    Walk(*value,
         {nullptr, kNone, resource, jinja::Copy(context_, pointer.substr(1)), {}, kNone, false});
  }
  return value;
}

std::string SchemaIndex::Place(const Dict* schema) const {
  std::string place;
  for (uint32_t i = Find(schema); i != kNone; i = positions_[i].parent) {
    const Position& at = positions_[i];
    std::string step;
    // A pointer into an unknown keyword is escaped already.
    if (!at.keyword.empty()) step.append("/").append(at.keyword);
    if (at.is_named) step.append("/").append(Escaped(at.name));
    if (at.index != kNone) step.append("/").append(std::to_string(at.index));
    place.insert(0, step);
  }
  place.insert(0, "#");
  return place;
}

}  // namespace cria::grammar
