// Items and attributes of values.

#include <limits>

#include "jinja/natives.h"
#include "jinja/operators.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

// With the name of an attribute behind it.
constexpr char kHasNo[] = ", so it has no ";

// loop.cycle(a, b…)
Value Cycle(Call& call) {
  const auto values = call.given.positional;
  if (!values.empty()) return values[call.self.loop->index % values.size()];
  call.context.Fail("there is nothing to cycle through");
  return {};
}
constexpr Native kCycle = {"cycle *", Cycle};

// loop.changed(a, b…): whether the arguments differ from those of the last call.
Value Changed(Call& call) {
  if (!call.given.keywords.empty()) {
    call.context.Fail("'changed' compares values, which have no names");
    return {};
  }
  const Value given = MakeList(call.context, call.given.positional, Kind::kTuple);
  const Value*& compared = call.self.loop->compared;
  const bool is_changed = compared == nullptr || !Equal(call.context, *compared, given);
  if (is_changed) compared = call.context.New<Value>(given);
  return Bool(is_changed);
}
constexpr Native kChanged = {"changed *", Changed};

Value MakeMethod(Context& context, const Value& self, const Native* native, std::string_view name) {
  if (native == nullptr) return Undefined(context, name);
  Value value;
  value.kind = Kind::kMethod;
  value.method = context.New<Method>({self, native});
  return value;
}

Value LoopAttribute(Context& context, const Value& value, std::string_view name) {
  const Loop& loop = *value.loop;
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(loop.items.size());
  const auto item = [&](int64_t at) {
    return at < 0 || at >= length ? Undefined(context, name) : loop.items[static_cast<size_t>(at)];
  };
  // "index" counts from 1, "index0" from 0.
  const int64_t first = name.ends_with('0') ? 0 : 1;
  const std::string_view stem = name.substr(0, name.size() - (first == 0 ? 1 : 0));
  if (stem == "index") return Int(index + first);
  if (stem == "revindex") return Int(length - index - 1 + first);
  if (stem == "depth") return Int(loop.depth + first);
  if (name == "first") return Bool(index == 0);
  if (name == "last") return Bool(index + 1 == length);
  if (name == "length") return Int(length);
  if (name == "previtem") return item(index - 1);
  if (name == "nextitem") return item(index + 1);
  if (name == "cycle") return MakeMethod(context, value, &kCycle, name);
  if (name == "changed") return MakeMethod(context, value, &kChanged, name);
  return Undefined(context, name);
}

Value NextItem(Call& call) {
  Cycler& cycler = *call.self.cycler;
  const Value item = cycler.items[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.items.size();
  return item;
}
Value ResetItems(Call& call) {
  call.self.cycler->next = 0;
  return None();
}
constexpr Native kCyclerMethods[] = {{"next", NextItem}, {"reset", ResetItems}};

Value CyclerAttribute(Context& context, const Value& value, std::string_view name) {
  const Cycler& cycler = *value.cycler;
  if (name == "current") return cycler.items[cycler.next];
  if (name == "pos") return Int(static_cast<int64_t>(cycler.next));
  if (name == "items") return MakeList(context, cycler.items, Kind::kTuple);
  return MakeMethod(context, value, FindNative(kCyclerMethods, name), name);
}

// A method of the value with this name, or an undefined value.
Value MethodOrUndefined(Context& context, const Value& value, std::string_view name) {
  if (value.is(Kind::kString)) {
    return MakeMethod(context, value, FindStringMethod(name), name);
  }
  if (value.is_sequence() && value.list->is_group) {
    if (name == "grouper") return value.list->items[0];
    if (name == "list") return value.list->items[1];
  }
  if (value.is_sequence()) return MakeMethod(context, value, FindListMethod(name), name);
  if (value.is(Kind::kDict)) return MakeMethod(context, value, FindDictMethod(name), name);
  return Undefined(context, name);
}

}  // namespace

Value GetAttribute(Context& context, const Value& value, std::string_view name) {
  switch (value.kind) {
    case Kind::kUndefined:
      FailOfUndefined(context, value, kHasNo, name);
      return {};
    case Kind::kLoop:
      return LoopAttribute(context, value, name);
    case Kind::kCycler:
      return CyclerAttribute(context, value, name);
    case Kind::kMacro:
      return MacroAttribute(context, *value.macro, name);
    case Kind::kNamespace: {
      const Value* found = Find(value.attributes->entries, name);
      return found != nullptr ? *found : Undefined(context, name);
    }
    case Kind::kDict: {
      // As in Python, methods hide keys of the same name.
      if (FindDictMethod(name) != nullptr) return MethodOrUndefined(context, value, name);
      context.Charge(value.dict->entries.size() / 8);
      const Value* found = Find(value.dict->entries, name);
      return found != nullptr ? *found : Undefined(context, name);
    }
    default:
      return MethodOrUndefined(context, value, name);
  }
}

Value GetItem(Context& context, const Value& container, const Value& index) {
  if (container.is(Kind::kDict)) {
    if (const Value* found = Find(context, container.dict->entries, index)) return *found;
  }
  const std::string_view name =
      index.is(Kind::kString) ? Flat(context, *index.text) : std::string_view();
  if (container.is(Kind::kUndefined)) {
    FailOfUndefined(context, container, kHasNo, name.empty() ? "item" : name);
    return {};
  }
  if (index.is(Kind::kString)) {
    return container.is(Kind::kDict) ? MethodOrUndefined(context, container, name)
                                     : GetAttribute(context, container, name);
  }
  if (!index.is(Kind::kInt)) return {};
  int64_t at = index.integer;
  // Strings and lists are never that long.
  if (at > std::numeric_limits<int32_t>::max()) return {};
  if (container.is(Kind::kString)) {
    const std::string_view bytes = Flat(context, *container.text);
    context.ChargeBytes(bytes.size());
    if (at < 0) at += static_cast<int64_t>(CountCharacters(bytes));
    if (at < 0) return {};
    const size_t begin = CharacterOffset(bytes, static_cast<size_t>(at));
    if (begin >= bytes.size()) return {};
    return Slice(context, *container.text, begin, begin + CharacterBytes(bytes.substr(begin)));
  }
  if (!container.is_sequence()) return {};
  const auto items = container.list->items;
  if (at < 0) at += static_cast<int64_t>(items.size());
  if (at < 0 || static_cast<size_t>(at) >= items.size()) return {};
  return items[static_cast<size_t>(at)];
}

}  // namespace cria::jinja
