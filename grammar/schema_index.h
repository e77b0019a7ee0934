#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::grammar {

// Where the schemas of a document are, by their objects, and what references to them mean.
class SchemaIndex {
 public:
  // `root` is in the memory of the context, which must outlive the index.
  SchemaIndex(jinja::Context& context, const jinja::Value& root);

  // The schema to which the value of $ref in `from` refers; null if the document has none.
  const jinja::Value* Resolve(const jinja::Dict* from, std::string_view reference);

  // The place of a schema in the document, as a JSON pointer behind `#`.
  std::string Place(const jinja::Dict* schema) const;

  // The value with this name; null if there is none.
  const jinja::Value* Member(const jinja::Dict& object, std::string_view name);

  // Whether the values have taken more memory than they may. What is added afterwards has no bound.
  bool is_full() const { return context_.failed(); }

  // The bytes of a value that is a string; empty for others.
  std::string_view Bytes(const jinja::Value& value);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kMaxSchemas = 8192;

  // Each schema that is an object.
  struct Position {
    const jinja::Dict* schema;
    uint32_t parent;  // In positions_, or kNone.
    uint32_t resource;
    std::string_view keyword;  // In the parent.
    std::string_view name;     // In the value of the keyword, if that is a map.
    uint32_t index;            // There, if it is a list; otherwise kNone.
    bool is_named;
  };
  // A part of the document with an identifier of its own: a base for references.
  struct Resource {
    std::string_view uri;
    const jinja::Value* root;
  };
  struct Anchor {
    std::string_view name;
    uint32_t resource;
    const jinja::Value* schema;
  };

  // Adds the schema and all schemas in it.
  void Walk(const jinja::Value& schema, Position position);
  void AddPosition(const Position& position);
  // The slot of the schema, or the empty one where it would be.
  size_t SlotOf(const jinja::Dict* schema) const;
  uint32_t Find(const jinja::Dict* schema) const;  // In positions_, or kNone.
  const jinja::Value* Follow(uint32_t resource, std::string_view pointer);

  jinja::Context& context_;
  jinja::Value root_;
  bool has_old_ids_ = false;  // `id` is what `$id` is in later drafts.
  std::vector<Position> positions_;
  std::vector<uint32_t> slots_;  // A hash table of indices of positions_; kNone where none is.
  std::vector<Resource> resources_;
  std::vector<Anchor> anchors_;
};

}  // namespace cria::grammar
