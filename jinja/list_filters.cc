#include "jinja/list_filters.h"

#include <algorithm>

#include "jinja/operators.h"
#include "jinja/string_functions.h"

namespace cria::jinja {
namespace {

std::span<const Value> SelfItems(Call& call) { return Items(call.context, call.self); }

// The value's attribute, or that of its attribute: "function.name"; parts that are digits are
// indices. If there is no such attribute, returns `absent` or an undefined value.
Value AttributeOf(Context& context, Value value, std::string_view path, const Value& absent) {
  while (!path.empty() && !context.failed()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    const bool is_index = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
    int64_t index = 0;
    for (const char digit : name.substr(0, 9)) index = index * 10 + (digit - '0');
    value = is_index ? GetItem(context, value, Int(index))
                     : GetItem(context, value, Trusted(context, name));
    if (value.is(Kind::kUndefined) && !absent.is_absent()) value = absent;
  }
  return value;
}

Value AttributeOf(Context& context, const Value& value, const Value& attribute,
                  const Value& absent = {}) {
  if (attribute.is_absent()) return value;
  if (!attribute.is(Kind::kInt)) {
    return AttributeOf(context, value, Flat(context, ToText(context, attribute)), absent);
  }
  const Value found = GetItem(context, value, attribute);
  return found.is(Kind::kUndefined) ? absent : found;
}

std::string_view NameArgument(Call& call, size_t index) {
  if (index >= call.given.positional.size() || !call.given.positional[index].is(Kind::kString)) {
    call.context.Fail("a filter needs a name as an argument");
    return {};
  }
  return Flat(call.context, *call.given.positional[index].text);
}

// The items for which a test is true, or those for which it is false. The test is applied to their
// attribute if the first argument names one. Without a test, the items' own truth counts.
Value Choose(Call& call, bool of_attribute, bool wanted) {
  Context& context = call.context;
  // As in Python, a false value has no items, and the arguments are not checked.
  if (!IsTrue(call.self)) return MakeGenerator(context, {});
  const size_t name_index = of_attribute ? 1 : 0;
  Value attribute;
  if (of_attribute) {
    if (call.given.positional.empty()) NameArgument(call, 0);
    if (context.failed()) return {};
    attribute = call.given.positional[0];
  }
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
  return MakeGenerator(context, chosen.items());
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

// The key for sort: the value of an attribute, or of several, whose names are separated by commas.
Value AttributesOf(Context& context, const Value& value, const Value& attribute,
                   bool case_sensitive) {
  const std::string_view names =
      attribute.is(Kind::kString) ? Flat(context, *attribute.text) : std::string_view();
  if (!names.contains(',')) {
    return SortKey(context, AttributeOf(context, value, attribute), case_sensitive);
  }
  const Value paths = Split(context, *attribute.text, Trusted(context, ","), -1, false);
  Growing<Value> keys(context);
  for (const Value& path : paths.list->items) {
    keys.Add(SortKey(context, AttributeOf(context, value, path), case_sensitive));
  }
  return MakeList(context, keys.items());
}

// The list of the items, and then of `count` copies of `fill` unless that is absent.
Value FilledUp(Context& context, std::span<const Value> items, const Value& fill, int64_t count) {
  context.Charge(1);
  const Value list = MakeList(context, items);
  if (fill.is_absent()) return list;
  const Value filling = ApplyOperator(context, Operator::kMultiply,
                                      MakeList(context, {context.New(fill), 1}), Int(count));
  return context.failed() ? list : ApplyOperator(context, Operator::kAdd, list, filling);
}

// The first of the smallest or largest items.
Value Extreme(Call& call, bool is_max) {
  const auto& [case_sensitive, attribute, unused1, unused2] = call.parameters;
  Value best = Undefined(call.context, is_max ? "max of no items" : "min of no items");
  Value best_key;
  bool has_best = false;
  for (const Value& item : SelfItems(call)) {
    if (call.context.failed()) break;
    const Value key =
        SortKey(call.context, AttributeOf(call.context, item, attribute), IsTrue(case_sensitive));
    call.context.Charge(1);
    if (has_best &&
        !(is_max ? Less(call.context, best_key, key) : Less(call.context, key, best_key))) {
      continue;
    }
    best = item;
    best_key = key;
    has_best = true;
  }
  return best;
}

}  // namespace

Value JoinFilter(Call& call) {
  const auto& [separator, attribute, unused1, unused2] = call.parameters;
  Growing<Value> items(call.context);
  for (const Value& item : SelfItems(call)) {
    items.Add(AttributeOf(call.context, item, attribute));
  }
  return Join(call.context, items.items(), ToText(call.context, separator), /*is_markup=*/false);
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
  if (call.self.is(Kind::kUndefined)) return MakeGenerator(call.context, {});
  if (!call.self.is(Kind::kDict)) {
    return FailOfType(call.context, call.self, " has no items");
  }
  const Value items = Apply(call.context, *FindDictMethod("items"), call.self, {});
  return MakeGenerator(call.context, items.list->items);
}

Value DictSortFilter(Call& call) {
  const auto& [case_sensitive, by, reverse, unused] = call.parameters;
  const std::string_view order =
      by.is(Kind::kUndefined) ? "key" : Flat(call.context, ToText(call.context, by));
  if (order != "key" && order != "value") {
    call.context.Fail({"dictsort goes by 'key' or by 'value', not by '", order, "'"});
    return {};
  }
  const Value pairs = ItemsFilter(call);
  Growing<Entry> keyed(call.context);
  for (const Value& pair : Items(call.context, pairs)) {
    if (call.context.failed()) break;
    const Value& key = pair.list->items[order == "key" ? 0 : 1];
    keyed.Add({SortKey(call.context, key, IsTrue(case_sensitive)), pair});
  }
  return SortByKeys(call, keyed.items(), IsTrue(reverse));
}

Value ReverseFilter(Call& call) {
  if (call.self.is(Kind::kString)) return GetSlice(call.context, call.self, {}, {}, Int(-1));
  const Value reversed = GetSlice(call.context, ListFilter(call), {}, {}, Int(-1));
  return call.context.failed() ? Value() : MakeGenerator(call.context, reversed.list->items);
}

Value UniqueFilter(Call& call) {
  const auto& [case_sensitive, attribute, unused1, unused2] = call.parameters;
  Growing<Value> keys(call.context);
  Growing<Value> items(call.context);
  for (const Value& item : SelfItems(call)) {
    if (call.context.failed()) break;
    const Value key =
        SortKey(call.context, AttributeOf(call.context, item, attribute), IsTrue(case_sensitive));
    const bool is_known = std::ranges::any_of(
        keys.items(), [&](const Value& other) { return Equal(call.context, key, other); });
    if (is_known) continue;
    keys.Add(key);
    items.Add(item);
  }
  return MakeGenerator(call.context, items.items());
}

Value SortFilter(Call& call) {
  const auto& [reverse, case_sensitive, attribute, unused] = call.parameters;
  Growing<Entry> keyed(call.context);
  for (const Value& item : SelfItems(call)) {
    keyed.Add({AttributesOf(call.context, item, attribute, IsTrue(case_sensitive)), item});
  }
  return SortByKeys(call, keyed.items(), IsTrue(reverse));
}

// The items as lists of so many; the last one is filled up.
Value BatchFilter(Call& call) {
  Context& context = call.context;
  const auto& [line_count, fill, unused1, unused2] = call.parameters;
  const int64_t count = ToInt(context, line_count, "the length of a batch");
  const auto items = SelfItems(call);
  Growing<Value> batches(context);
  // As in Python, batches of no items are one such batch, and one of all items.
  if (count == 0 && !items.empty()) batches.Add(MakeList(context, {}));
  const size_t size = count > 0 ? static_cast<size_t>(count) : items.size();
  for (size_t begin = 0; begin < items.size() && !context.failed(); begin += size) {
    const auto batch = items.subspan(begin, std::min(size, items.size() - begin));
    batches.Add(FilledUp(context, batch, fill, count - static_cast<int64_t>(batch.size())));
  }
  return MakeGenerator(context, batches.items());
}

// The items as so many lists; those that have fewer items than the first ones get `fill`.
Value SliceFilter(Call& call) {
  Context& context = call.context;
  const auto& [slices, fill, unused1, unused2] = call.parameters;
  const int64_t count = ToInt(context, slices, "a number of slices");
  if (count == 0) context.Fail("a division by zero");
  const auto items = SelfItems(call);
  Growing<Value> lists(context);
  size_t begin = 0;
  for (int64_t i = 0; i < count && !context.failed(); ++i) {
    const auto all = static_cast<int64_t>(items.size());
    const bool is_longer = i < all % count;
    const auto size = static_cast<size_t>(all / count + (is_longer ? 1 : 0));
    lists.Add(FilledUp(context, items.subspan(begin, size), fill, is_longer ? 0 : 1));
    begin += size;
  }
  return MakeGenerator(context, lists.items());
}

// A list of tuples: the value of an attribute, and the items that have it.
Value GroupByFilter(Call& call) {
  Context& context = call.context;
  const auto& [attribute, absent, case_sensitive, unused] = call.parameters;
  if (attribute.is(Kind::kUndefined)) context.Fail("groupby needs an attribute");
  Growing<Entry> keyed(context);
  for (const Value& item : SelfItems(call)) {
    keyed.Add(
        {SortKey(context, AttributeOf(context, item, attribute, absent), IsTrue(case_sensitive)),
         item});
  }
  std::span<Entry> left = keyed.items();
  SortEntries(context, left, /*reverse=*/false);
  Growing<Value> groups(context);
  while (!left.empty() && !context.failed()) {
    Growing<Value> members(context);
    const Entry first = left[0];
    while (!left.empty() && Equal(context, left[0].key, first.key)) {
      context.Charge(1);
      members.Add(left[0].value);
      left = left.subspan(1);
    }
    const auto pair = context.Array<Value>(2);
    if (pair.empty()) break;
    pair[0] = AttributeOf(context, first.value, attribute, absent);
    pair[1] = MakeList(context, members.items());
    Value group;
    group.kind = Kind::kTuple;
    group.list = context.New<List>({.items = pair, .is_group = true});
    groups.Add(group);
  }
  return MakeList(context, groups.items());
}

Value SumFilter(Call& call) {
  const auto& [attribute, start, unused1, unused2] = call.parameters;
  if (start.is(Kind::kString)) call.context.Fail("sum does not join strings; use join");
  Value total = start.is(Kind::kUndefined) ? Int(0) : start;
  for (const Value& item : SelfItems(call)) {
    if (call.context.failed()) break;
    call.context.Charge(1);
    total = ApplyOperator(call.context, Operator::kAdd, total,
                          AttributeOf(call.context, item, attribute));
  }
  return total;
}

Value MinFilter(Call& call) { return Extreme(call, false); }
Value MaxFilter(Call& call) { return Extreme(call, true); }

// map("filter", arguments…) or map(attribute="name", default=value)
Value MapFilter(Call& call) {
  Context& context = call.context;
  if (!IsTrue(call.self)) return MakeGenerator(context, {});
  Arguments arguments = call.given;
  Value attribute;
  Value absent;
  const Native* filter = nullptr;
  if (arguments.positional.empty()) {
    for (const Keyword& keyword : arguments.keywords) {
      if (keyword.name == "attribute") {
        attribute = keyword.value;
      } else if (keyword.name == "default") {
        absent = keyword.value;
      } else {
        context.Fail("'map' is given an argument that it does not take");
      }
    }
    if (attribute.is(Kind::kUndefined)) NameArgument(call, 0);
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
    mapped.Add(filter != nullptr ? Apply(context, *filter, item, arguments)
                                 : AttributeOf(context, item, attribute, absent));
  }
  return MakeGenerator(context, mapped.items());
}

Value SelectFilter(Call& call) { return Choose(call, false, true); }
Value RejectFilter(Call& call) { return Choose(call, false, false); }
Value SelectAttributeFilter(Call& call) { return Choose(call, true, true); }
Value RejectAttributeFilter(Call& call) { return Choose(call, true, false); }

}  // namespace cria::jinja
