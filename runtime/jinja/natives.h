#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "jinja/context.h"
#include "jinja/value.h"

namespace cria::jinja {

struct Keyword {
  std::string_view name;
  Value value;
};

// What stands between the parentheses of a call.
struct Arguments {
  std::span<const Value> positional;
  std::span<const Keyword> keywords;
};

inline constexpr size_t kMaxParameters = 4;

// A call of a native function, with its arguments in the order of its parameters.
struct Call {
  Context& context;
  Value self;  // Of filters, tests and methods: what they are applied to.
  // By parameter; undefined if it is not given.
  std::array<Value, kMaxParameters> parameters;
  // As they were given.
  Arguments given;
};

// A filter, test, method or function of the template's language.
struct Native {
  std::string_view name;
  Value (*function)(Call& call);
  // The names of the parameters, with a comma between; "*": it looks at `given` itself.
  std::string_view parameters = "";
};

// A method of something.
struct Method {
  Value self;
  const Native* native;
};

// The one of this name in a table, or null.
const Native* FindNative(std::span<const Native> natives, std::string_view name);
const Native* FindFilter(std::string_view name);
const Native* FindTest(std::string_view name);
const Native* FindStringMethod(std::string_view name);
const Native* FindDictMethod(std::string_view name);
const Native* FindFunction(std::string_view name);

// Calls it; a failure where arguments are too many or not its parameters.
Value Apply(Context& context, const Native& native, const Value& self, const Arguments& arguments);

// The index of a whole number, or a failure that says what must be one.
int64_t ToInt(Context& context, const Value& value, std::string_view what);

}  // namespace cria::jinja
