#include "jinja/natives.h"

#include <algorithm>

namespace cria::jinja {
namespace {

// Returns what is before the first `separator` in a list, and removes both from the list.
std::string_view TakeName(std::string_view* names, char separator) {
  const std::string_view name = names->substr(0, names->find(separator));
  names->remove_prefix(std::min(name.size() + 1, names->size()));
  return name;
}

}  // namespace

// A malformed template may have an empty name, which is not.
bool IsListed(std::string_view list, std::string_view name) {
  size_t at = name.empty() ? list.npos : list.find(name);
  while (at != list.npos && (list[at - 1] != ' ' || list[at + name.size()] != ' ')) {
    at = list.find(name, at + 1);
  }
  return at != list.npos;
}

const Native* FindNative(std::span<const Native> natives, std::string_view name) {
  const auto found = std::ranges::find(natives, name, [](const Native& native) {
    std::string_view signature = native.signature;
    return TakeName(&signature, ' ');
  });
  return found == natives.end() ? nullptr : &*found;
}

Value Apply(Context& context, const Native& native, const Value& self, const Arguments& arguments) {
  Call call = {.context = context, .self = self, .parameters = {}, .given = arguments};
  std::string_view names = native.signature;
  const std::string_view native_name = TakeName(&names, ' ');
  if (names == "*") return native.function(call);
  size_t used = 0;
  for (size_t i = 0; i < kMaxParameters && !names.empty(); ++i) {
    const std::string_view name = TakeName(&names, ',');
    if (i < arguments.positional.size()) {
      call.parameters[i] = arguments.positional[i];
      ++used;
    }
    for (const Keyword& keyword : arguments.keywords) {
      if (keyword.name != name) continue;
      call.parameters[i] = keyword.value;
      ++used;
    }
  }
  if (used != arguments.positional.size() + arguments.keywords.size()) {
    context.Fail({"'", native_name, "' is given an argument that it does not take"});
    return {};
  }
  return native.function(call);
}

int64_t ToInt(Context& context, const Value& value, std::string_view what) {
  if (value.is(Kind::kInt)) return value.integer;
  if (value.is(Kind::kBool)) return value.boolean ? 1 : 0;
  context.Fail({what, " must be a whole number, not of type ", KindName(value.kind)});
  return 0;
}

}  // namespace cria::jinja
