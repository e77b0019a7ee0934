#include "jinja/list_filters.h"

#include <algorithm>

#include "jinja/operators.h"
#include "jinja/string_functions.h"

namespace cria::jinja {
namespace {

std::span<const Value> SelfItems(Call& call) { return Items(call.context, call.self); }

// The value's attribute, or an attribute of the attribute: "function.name"; parts that are digits
// are indices. Undefined if it does not exist.
Value AttributeOf(Context& context, Value value, std::string_view path) {
  while (!path.empty() && !context.failed()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    const bool is_index = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
    int64_t index = 0;
    for (const char digit : name.substr(0, 9)) index = index * 10 + (digit - '0');
    value = is_index ? GetItem(context, value, Int(index))
                     : GetItem(context, value, Trusted(context, name));
  }
  return value;
}

Value AttributeOf(Context& context, const Value& value, const Value& attribute) {
  if (attribute.is_absent()) return value;
  if (attribute.is(Kind::kInt)) return GetItem(context, value, attribute);
  return AttributeOf(context, value, Flat(context, ToText(context, attribute)));
}

std::string_view NameArgument(Call& call, size_t index) {
  if (index >= call.given.positional.size() || !call.given.positional[index].is(Kind::kString)) {
    call.context.Fail({"a filter needs a name as an argument"});
    return {};
  }
  return Flat(call.context, *call.given.positional[index].text);
}

// The items for which a test is true, or those for which it is false. The test is applied to their
// attribute if the first argument names one. Without a test, the items' own truth counts.
Value Choose(Call& call, bool of_attribute, bool wanted) {
  Context& context = call.context;
  const std::string_view attribute = of_attribute ? NameArgument(call, 0) : std::string_view();
  const size_t name_index = of_attribute ? 1 : 0;
  Arguments arguments = call.given;
  const Native* test = nullptr;
  if (arguments.positional.size() > name_index) {
    const std::string_view name = NameArgument(call, name_index);
    test = FindTest(name);
    if (test == nullptr) context.Fail({"the test '", name, "' is not known"});
    arguments.positional = arguments.positional.subspan(name_index + 1);
  }
  Growing<Value> chosen(context);
  for (const Value& item : SelfItems(call)) {
    if (context.failed()) break;
    context.Charge(1);
    const Value value = AttributeOf(context, item, attribute);
    const Value result = test == nullptr ? value : Apply(context, *test, value, arguments);
    if (IsTrue(result) == wanted) chosen.Add(item);
  }
  return MakeList(context, chosen.items());
}

// The key by which a value is sorted: in lower case unless the case counts.
Value SortKey(Context& context, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::kString)) return value;
  return ChangeCase(context, *value.text, LetterCase::kLower);
}

// The items, sorted by their keys.
Value SortByKeys(Call& call, std::span<Entry> keyed, bool reverse) {
  SortEntries(call.context, keyed, reverse);
  Growing<Value> sorted(call.context);
  for (const Entry& entry : keyed) sorted.Add(entry.value);
  return MakeList(call.context, sorted.items());
}

}  // namespace

Value JoinFilter(Call& call) {
  const auto& [separator, attribute, unused1, unused2] = call.parameters;
  Growing<Value> items(call.context);
  for (const Value& item : SelfItems(call)) {
    items.Add(AttributeOf(call.context, item, attribute));
  }
  return Join(call.context, items.items(), ToText(call.context, separator));
}

Value FirstFilter(Call& call) {
  const auto items = SelfItems(call);
  return items.empty() ? Undefined(call.context, "first item") : items.front();
}

Value LastFilter(Call& call) {
  const auto items = SelfItems(call);
  return items.empty() ? Undefined(call.context, "last item") : items.back();
}

Value ListFilter(Call& call) { return MakeList(call.context, SelfItems(call)); }

Value ItemsFilter(Call& call) {
  if (call.self.is(Kind::kUndefined)) return MakeList(call.context, {});
  if (!call.self.is(Kind::kDict)) {
    call.context.Fail({"a value of type ", KindName(call.self.kind), " has no items"});
    return {};
  }
  return Apply(call.context, *FindDictMethod("items"), call.self, {});
}

Value DictSortFilter(Call& call) {
  const Value pairs = ItemsFilter(call);
  Growing<Entry> keyed(call.context);
  for (const Value& pair : Items(call.context, pairs)) {
    if (call.context.failed()) break;
    keyed.Add({SortKey(call.context, pair.list->items[0], false), pair});
  }
  return SortByKeys(call, keyed.items(), false);
}

Value ReverseFilter(Call& call) {
  if (call.self.is(Kind::kString)) return GetSlice(call.context, call.self, {}, {}, Int(-1));
  return GetSlice(call.context, ListFilter(call), {}, {}, Int(-1));
}

Value UniqueFilter(Call& call) {
  Growing<Value> keys(call.context);
  Growing<Value> items(call.context);
  for (const Value& item : SelfItems(call)) {
    if (call.context.failed()) break;
    const Value key = SortKey(call.context, item, false);
    const bool is_known = std::ranges::any_of(
        keys.items(), [&](const Value& other) { return Equal(call.context, key, other); });
    if (is_known) continue;
    keys.Add(key);
    items.Add(item);
  }
  return MakeList(call.context, items.items());
}

Value SortFilter(Call& call) {
  const auto& [reverse, case_sensitive, attribute, unused] = call.parameters;
  Growing<Entry> keyed(call.context);
  for (const Value& item : SelfItems(call)) {
    const Value key = AttributeOf(call.context, item, attribute);
    keyed.Add({SortKey(call.context, key, IsTrue(case_sensitive)), item});
  }
  return SortByKeys(call, keyed.items(), IsTrue(reverse));
}

// map("filter", arguments…) or map(attribute="name", default=value)
Value MapFilter(Call& call) {
  Context& context = call.context;
  Arguments arguments = call.given;
  Value attribute;
  Value absent;
  const Native* filter = nullptr;
  if (arguments.positional.empty()) {
    for (const Keyword& keyword : arguments.keywords) {
      (keyword.name == "attribute" ? attribute : absent) = keyword.value;
    }
  } else {
    const std::string_view name = NameArgument(call, 0);
    filter = FindFilter(name);
    if (filter == nullptr) context.Fail({"the filter '", name, "' is not known"});
    arguments.positional = arguments.positional.subspan(1);
  }
  Growing<Value> mapped(context);
  for (const Value& item : SelfItems(call)) {
    if (context.failed()) break;
    context.Charge(1);
    const Value value = filter != nullptr ? Apply(context, *filter, item, arguments)
                                          : AttributeOf(context, item, attribute);
    mapped.Add(value.is(Kind::kUndefined) ? absent : value);
  }
  return MakeList(context, mapped.items());
}

Value SelectFilter(Call& call) { return Choose(call, false, true); }
Value RejectFilter(Call& call) { return Choose(call, false, false); }
Value SelectAttributeFilter(Call& call) { return Choose(call, true, true); }
Value RejectAttributeFilter(Call& call) { return Choose(call, true, false); }

}  // namespace cria::jinja
