// The functions that a template may call by name.

#include <time.h>  // strftime_l

#include <array>
#include <string>

#include "jinja/c_locale.h"
#include "jinja/natives.h"
#include "jinja/text.h"

namespace cria::jinja {

std::span<Entry> GivenEntries(Call& call) {
  Growing<Entry> entries(call.context);
  for (const Value& value : call.given.positional) {
    if (!value.is(Kind::kDict) || call.given.positional.size() != 1) {
      FailOfType(call.context, value, " cannot become a dictionary");
      return {};
    }
    for (const Entry& entry : value.dict->entries) entries.Add(entry);
  }
  for (const Keyword& keyword : call.given.keywords) {
    // With "**", the name may come from a message.
    entries.Add({Untrusted(call.context, keyword.name), keyword.value});
  }
  call.context.Charge(entries.size());
  return entries.items();
}

namespace {

// range(stop) or range(start, stop, step)
Value Range(Call& call) {
  const Value& second = call.parameters[1];
  const bool has_start = !second.is_absent();
  const int64_t first = ToInt(call.context, call.parameters[0], "a bound of a range");
  const int64_t start = has_start ? first : 0;
  const int64_t stop = has_start ? ToInt(call.context, second, "a bound of a range") : first;
  const Value& third = call.parameters[2];
  const int64_t step = third.is_absent() ? 1 : ToInt(call.context, third, "the step of a range");
  if (step == 0) call.context.Fail("the step of a range is zero");
  Growing<Value> items(call.context);
  int64_t item = start;
  while (!call.context.failed() && (step > 0 ? item < stop : item > stop)) {
    call.context.Charge(1);
    items.Add(Int(item));
    if (__builtin_add_overflow(item, step, &item)) break;
  }
  return MakeView(call.context, items.items(), "range");
}

Value MakeDictionary(Call& call) { return MakeDict(call.context, GivenEntries(call)); }

Value MakeNamespace(Call& call) {
  Value value;
  value.kind = Kind::kNamespace;
  value.attributes = call.context.New<Namespace>({GivenEntries(call)});
  return value;
}

Value RaiseException(Call& call) {
  const Text& message = ToText(call.context, call.parameters[0]);
  call.context.Fail({"the model's template refuses these messages: ", Flat(call.context, message)});
  return {};
}

Value StrftimeNow(Call& call) {
  const Text& text = ToText(call.context, call.parameters[0]);
  const std::string format(Flat(call.context, text));
  const std::tm now = call.context.Now();
  std::array<char, 256> written;
  const size_t size = strftime_l(written.data(), written.size(), format.c_str(), &now, CLocale());
  const std::string_view copy = Copy(call.context, {written.data(), size});
  return IsTrusted(text) ? Trusted(call.context, copy) : Untrusted(call.context, copy);
}

Value CyclerOf(Context& context, std::span<const Value> items) {
  Value value;
  value.kind = Kind::kCycler;
  value.cycler = context.New<Cycler>({items});
  return value;
}

Value MakeCycler(Call& call) {
  if (call.given.positional.empty() || !call.given.keywords.empty()) {
    call.context.Fail("'cycler' needs items, which have no names");
  }
  return CyclerOf(call.context, call.given.positional);
}

// The separator, except for the first time.
Value JoinerText(Call& call) {
  Cycler& cycler = *call.self.cycler;
  const Value text = cycler.items[cycler.next];
  cycler.next = 1;
  return text;
}
constexpr Native kJoinerText = {"joiner", JoinerText};

Value MakeJoiner(Call& call) {
  const Value& separator = call.parameters[0];
  Growing<Value> texts(call.context);
  texts.Add(Trusted(call.context, {}));
  texts.Add(separator.is(Kind::kUndefined) ? Trusted(call.context, ", ") : separator);
  Value joiner;
  joiner.kind = Kind::kMethod;
  joiner.method = call.context.New<Method>({CyclerOf(call.context, texts.items()), &kJoinerText});
  return joiner;
}

// Functions that only exist for those who ask whether they do: a parser refuses calls of them.
Value NotSupported(Call& call) {
  call.context.Fail("this function is not supported");
  return {};
}

constexpr Native kFunctions[] = {{"range start,stop,step", Range},
                                 {"dict *", MakeDictionary},
                                 {"namespace *", MakeNamespace},
                                 {"cycler *", MakeCycler},
                                 {"joiner sep", MakeJoiner},
                                 {"lipsum *", NotSupported},
                                 {"raise_exception message", RaiseException},
                                 {"strftime_now format", StrftimeNow}};

}  // namespace

const Native* FindFunction(std::string_view name) { return FindNative(kFunctions, name); }

}  // namespace cria::jinja
