#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "jinja/context.h"

namespace cria::jinja {

struct Text;
struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Native;
struct Method;
struct Macro;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kLoop,      // The variable `loop`.
  kFunction,  // Of Jinja or its host.
  kMethod,    // Of a string or dictionary, with what it belongs to.
  kMacro,
};

// A value of the template's language, which are Python's. Small, and copied freely: what it points
// to lies in the memory of a Context. Nothing but a namespace ever changes.
struct Value {
  Kind kind = Kind::kUndefined;
  union {
    const std::string_view* name = nullptr;  // kUndefined: what there is not; may be null.
    bool boolean;
    int64_t integer;
    double real;
    const Text* text;
    const List* list;  // Also of kTuple.
    const Dict* dict;
    Namespace* attributes;
    const Loop* loop;
    const Native* function;
    const Method* method;
    const Macro* macro;
  };

  bool is(Kind other) const { return kind == other; }
  bool is_sequence() const { return is(Kind::kList) || is(Kind::kTuple); }
  // None counts, too: for arguments that may be left out.
  bool is_absent() const { return is(Kind::kUndefined) || is(Kind::kNone); }
};

struct List {
  std::span<const Value> items;
};

struct Entry {
  Value key;
  Value value;
};

struct Dict {
  std::span<const Entry> entries;  // In the order in which they were written.
};

struct Namespace {
  std::span<Entry> entries;
};

struct Loop {
  std::span<const Value> items;
  size_t index = 0;  // From 0.
  int depth = 0;     // From 0.
};

inline Value None() {
  Value value;
  value.kind = Kind::kNone;
  return value;
}
inline Value Bool(bool boolean) {
  Value value;
  value.kind = Kind::kBool;
  value.boolean = boolean;
  return value;
}
inline Value Int(int64_t integer) {
  Value value;
  value.kind = Kind::kInt;
  value.integer = integer;
  return value;
}
inline Value Float(double real) {
  Value value;
  value.kind = Kind::kFloat;
  value.real = real;
  return value;
}
inline Value String(const Text* text) {
  Value value;
  value.kind = Kind::kString;
  value.text = text;
  return value;
}

// A string whose bytes, which must outlive the context, come from the template or its host.
Value Trusted(Context& context, std::string_view bytes);
// The same of bytes that somebody else wrote.
Value Untrusted(Context& context, std::string_view bytes);
Value MakeList(Context& context, std::span<const Value> items, Kind kind = Kind::kList);
Value MakeDict(Context& context, std::span<const Entry> entries);
// Something undefined; errors call it by its name.
Value Undefined(Context& context, std::string_view name = {});

// As Python's type names.
std::string_view KindName(Kind kind);

bool IsTrue(const Value& value);
// A bool, an int or a float.
bool IsNumber(const Value& value);
// Of a number.
double ToFloat(const Value& value);

// a == b
bool Equal(Context& context, const Value& a, const Value& b, int depth = 0);

// The value of a key, or null.
const Value* Find(Context& context, std::span<const Entry> entries, const Value& key);
const Value* Find(std::span<const Entry> entries, std::string_view key);

// What a loop over the value goes through: items, keys or characters. Nothing of something
// undefined; a failure of what cannot be iterated.
std::span<const Value> Items(Context& context, const Value& value);
bool IsIterable(const Value& value);

// The value as Python's str() writes it, that is, strings as they are.
const Text& ToText(Context& context, const Value& value);

}  // namespace cria::jinja
