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

// The arguments between the parentheses of a call.
struct Arguments {
  std::span<const Value> positional;
  std::span<const Keyword> keywords;
};

inline constexpr size_t kMaxParameters = 4;

// A call of a native function, with its arguments in the order of its parameters.
struct Call {
  Context& context;
  Value self;  // For filters, tests and methods: the value that they are applied to.
  // The arguments in the order of the parameters; undefined if not given.
  std::array<Value, kMaxParameters> parameters;
  // The arguments as they were written.
  Arguments given;
};

// A filter, test, method or function of the template's language.
struct Native {
  // The name, and behind a space the names of the parameters, separated by commas:
  // "replace old,new,count". "*" instead of names: the function reads `given` itself.
  const char* signature;
  Value (*function)(Call& call);
};

// A method of a type of values.
struct Method {
  Value self;
  const Native* native;
};

// Whether the name is one of a list, in which a space is before and behind each name.
bool IsListed(std::string_view list, std::string_view name);
// The native with this name in a table, or null.
const Native* FindNative(std::span<const Native> natives, std::string_view name);
const Native* FindFilter(std::string_view name);
const Native* FindTest(std::string_view name);
const Native* FindStringMethod(std::string_view name);
const Native* FindListMethod(std::string_view name);  // Also for tuples.
const Native* FindDictMethod(std::string_view name);
const Native* FindFunction(std::string_view name);
// Filters that are also methods of strings.
Value TrimText(Call& call);
Value UpperText(Call& call);
Value LowerText(Call& call);
Value CapitalizeText(Call& call);
// The filter wordwrap.
Value WrapWords(Call& call);
// The entries for dict() and namespace(): those of a dictionary, if one is given, and the keywords.
std::span<Entry> GivenEntries(Call& call);
// macro.name
Value MacroAttribute(Context& context, const Macro& macro, std::string_view name);

// Calls the native; fails if there are too many arguments or one is not a parameter.
Value Apply(Context& context, const Native& native, const Value& self, const Arguments& arguments);

// The value as a whole number. Fails if it is not one; `what` is the subject of the sentence.
int64_t ToInt(Context& context, const Value& value, std::string_view what);

}  // namespace cria::jinja
