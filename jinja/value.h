#pragma once

#include <array>
#include <compare>
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
struct Generator;
struct Loop;
struct Recursion;
struct Cycler;
struct Native;
struct Method;
struct Macro;

enum class Kind : uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kNumeral,  // A whole number of more than 64 bits.
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kNamespace,
  kGenerator,  // The result of filters such as map and select.
  kLoop,       // The variable `loop`.
  kCycler,     // The result of cycler().
  kFunction,   // From Jinja or its host.
  kMethod,     // A string's, list's or dictionary's, with the value that it belongs to.
  kMacro,
};

// A value of the template's language, which has Python's types. It is small and copied freely: what
// it points to is in the memory of a Context. Only namespaces, generators and cyclers can change.
struct Value {
  Kind kind = Kind::kUndefined;
  union {
    const std::string_view* name = nullptr;  // kUndefined: the name that is undefined; may be null.
    bool boolean;
    int64_t integer;
    const std::string_view* digits;  // kNumeral: as it is written in JSON, without an exponent.
    double real;
    const Text* text;
    const List* list;  // Also for kTuple.
    const Dict* dict;
    Namespace* attributes;
    Generator* generator;
    Loop* loop;
    Cycler* cycler;
    const Native* function;
    const Method* method;
    const Macro* macro;
  };

  bool is(Kind other) const { return kind == other; }
  bool is_sequence() const { return is(Kind::kList) || is(Kind::kTuple); }
  // Undefined or None: for optional arguments.
  bool is_absent() const { return is(Kind::kUndefined) || is(Kind::kNone); }
};

struct List {
  std::span<const Value> items;
  // A tuple of the filter groupby, whose two items have names.
  bool is_group = false;
  // What Python names the list that a method of a dictionary gives, or range(); null for others.
  const char* view = nullptr;
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

// The items of one loop: Items() takes them. As in Python, a generator is true even if it is empty,
// and it has neither a length nor indices.
struct Generator {
  std::span<const Value> items;
};

// The items that follow each other, and which one of them is next. A joiner has one, too.
struct Cycler {
  std::span<const Value> items;
  size_t next = 0;
};

struct Loop {
  std::span<const Value> items;
  size_t index = 0;                      // From 0.
  int depth = 0;                         // In how many calls of a recursive loop this one runs.
  const Recursion* recursion = nullptr;  // What a call of the loop runs; null if not recursive.
  const Value* compared = nullptr;       // The arguments of the last changed(), a tuple.
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
// The digits must outlive the context.
Value Numeral(Context& context, std::string_view digits);
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

// A string from the template or its host. The bytes must outlive the context.
Value Trusted(Context& context, std::string_view bytes);
// A string from others.
Value Untrusted(Context& context, std::string_view bytes);
Value MakeList(Context& context, std::span<const Value> items, Kind kind = Kind::kList);
// A list that Python names otherwise, and does not write as a list.
Value MakeView(Context& context, std::span<const Value> items, const char* view);
Value MakeGenerator(Context& context, std::span<const Value> items);
Value MakeDict(Context& context, std::span<const Entry> entries);
// An undefined value; errors use its name.
Value Undefined(Context& context, std::string_view name = {});

// Named like Python's types.
std::string_view KindName(Kind kind);

// Fails: "'NAME' is undefined`what`'`quoted`'", where `quoted` may be empty.
void FailOfUndefined(Context& context, const Value& value, std::string_view what,
                     std::string_view quoted = {});
// Fails: "a value of type TYPE `what`". Returns an undefined value.
Value FailOfType(Context& context, const Value& value, const char* what);

bool IsTrue(const Value& value);
// Whether the value is a bool, a whole number or a float.
bool IsNumber(const Value& value);
// The value of a number.
double ToFloat(const Value& value);
// The value of a bool or of a kInt.
int64_t ToWord(const Value& value);
// The most digits of a double before the point, and a sign.
using WholeBuffer = std::array<char, 312>;
// The digits of a number without those behind the point; a float must be finite.
std::string_view WholeDigits(const Value& value, WholeBuffer* buffer);
// Compares numbers by their exact values, as Python does; unordered if one is not a number (NaN).
std::partial_ordering CompareNumbers(const Value& a, const Value& b);

// a == b
bool Equal(Context& context, const Value& a, const Value& b, int depth = 0);

// The value of a key, or null.
const Value* Find(Context& context, std::span<const Entry> entries, const Value& key);
const Value* Find(std::span<const Entry> entries, std::string_view key);

// The sequence that a loop over the value runs through: items, keys or characters. Empty for an
// undefined value; fails if the value cannot be iterated. Afterwards, a generator is empty.
std::span<const Value> Items(Context& context, const Value& value);
bool IsIterable(const Value& value);
// Whether the value can be iterated and has a length.
inline bool HasLength(const Value& value) {
  return IsIterable(value) && !value.is(Kind::kGenerator);
}

// Python's repr(value)
Value Representation(Context& context, const Value& value);

// Python's str(value): strings do not change.
const Text& ToText(Context& context, const Value& value);

}  // namespace cria::jinja
