// Jinja's filters: the names after "|".

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "jinja/formatting.h"
#include "jinja/json.h"
#include "jinja/list_filters.h"
#include "jinja/literals.h"
#include "jinja/natives.h"
#include "jinja/operators.h"
#include "jinja/string_functions.h"

namespace cria::jinja {
namespace {

const Text& SelfText(Call& call) { return ToText(call.context, call.self); }

Value ChangeSelf(Call& call, LetterCase letter_case) {
  return ChangeCase(call.context, SelfText(call), letter_case);
}

}  // namespace

Value TrimText(Call& call) {
  return Strip(call.context, SelfText(call), true, true, call.parameters[0]);
}
Value UpperText(Call& call) { return ChangeSelf(call, LetterCase::kUpper); }
Value LowerText(Call& call) { return ChangeSelf(call, LetterCase::kLower); }
Value CapitalizeText(Call& call) { return ChangeSelf(call, LetterCase::kCapitalized); }

namespace {

Value Title(Call& call) { return ChangeSelf(call, LetterCase::kWords); }
Value MakeString(Call& call) { return String(&SelfText(call)); }

Value ReplaceText(Call& call) {
  if (call.given.positional.size() + call.given.keywords.size() < 2) {
    call.context.Fail("replace needs the new text as a second argument");
    return {};
  }
  const Value& count = call.parameters[2];
  return Replace(call.context, SelfText(call), ToText(call.context, call.parameters[0]),
                 ToText(call.context, call.parameters[1]),
                 count.is_absent() ? -1 : ToInt(call.context, count, "a count"));
}

Value IndentLines(Call& call) {
  const auto& [width, first, blank, unused] = call.parameters;
  if (width.is(Kind::kString)) {
    return Indent(call.context, SelfText(call), *width.text, IsTrue(first), IsTrue(blank));
  }
  const int64_t spaces = width.is_absent() ? 4 : ToInt(call.context, width, "a width");
  const Value prefix =
      ApplyOperator(call.context, Operator::kMultiply, Trusted(call.context, " "), Int(spaces));
  if (call.context.failed()) return {};
  return Indent(call.context, SelfText(call), *prefix.text, IsTrue(first), IsTrue(blank));
}

Value Length(Call& call) {
  const Value& value = call.self;
  if (value.is(Kind::kString)) {
    call.context.ChargeBytes(value.text->size_bytes);
    return Int(static_cast<int64_t>(CountCharacters(Flat(call.context, *value.text))));
  }
  if (!HasLength(value)) {
    return FailOfType(call.context, value, " has no length");
  }
  return Int(static_cast<int64_t>(Items(call.context, value).size()));
}

Value Default(Call& call) {
  const auto& [value, boolean, unused1, unused2] = call.parameters;
  const bool is_kept = IsTrue(boolean) ? IsTrue(call.self) : !call.self.is(Kind::kUndefined);
  if (is_kept) return call.self;
  return value.is(Kind::kUndefined) ? Trusted(call.context, {}) : value;
}

// The number in a string, or nothing.
std::optional<double> ReadFloat(Context& context, const Text& text) {
  const std::string_view bytes = Flat(context, text);
  const auto [begin, end] = StrippedRange(bytes, true, true);
  return ReadDouble(bytes.substr(begin, end - begin));
}

// The number without its fraction; fails if that does not fit.
Value WholeOf(Context& context, double number) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (number >= -kEnd && number < kEnd) return Int(static_cast<int64_t>(number));
  context.Fail("a number is too large");
  return {};
}

Value ToWholeNumber(Call& call) {
  const Value& value = call.self;
  if (value.is(Kind::kInt) || value.is(Kind::kNumeral)) return value;
  if (value.is(Kind::kBool)) return Int(value.boolean ? 1 : 0);
  const auto& [fallback, base, unused1, unused2] = call.parameters;
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double number = value.is(Kind::kFloat) ? value.real : kNone;
  if (value.is(Kind::kString)) {
    const std::string_view bytes = Flat(call.context, *value.text);
    const auto [begin, end] = StrippedRange(bytes, true, true);
    const auto whole = ReadWholeNumber(call.context, bytes.substr(begin, end - begin),
                                       base.is(Kind::kUndefined) ? 10
                                       : base.is(Kind::kInt)     ? base.integer
                                                                 : -1);
    if (whole) return Int(*whole);
    number = ReadFloat(call.context, *value.text).value_or(kNone);
    if (std::isinf(number)) number = kNone;
  }
  if (std::isnan(number)) return fallback.is(Kind::kUndefined) ? Int(0) : fallback;
  return WholeOf(call.context, number);
}

Value ToRealNumber(Call& call) {
  if (IsNumber(call.self)) {
    const double number = ToFloat(call.self);
    if (call.self.is(Kind::kNumeral) && std::isinf(number)) {
      call.context.Fail("a number is too large for a float");
    }
    return Float(number);
  }
  if (call.self.is(Kind::kString)) {
    if (const auto number = ReadFloat(call.context, *call.self.text)) return Float(*number);
  }
  return call.parameters[0].is(Kind::kUndefined) ? Float(0.0) : call.parameters[0];
}

Value Absolute(Call& call) {
  if (call.self.is(Kind::kFloat)) return Float(std::abs(call.self.real));
  const bool is_negative = IsNumber(call.self) && ToFloat(call.self) < 0.0;
  return ApplySign(call.context, is_negative, call.self);
}

// "common" rounds like Python's round(), which takes the even one of two numbers that are equally
// near.
Value RoundNumber(Call& call) {
  Context& context = call.context;
  const auto& [precision, method, unused1, unused2] = call.parameters;
  const int64_t digits =
      precision.is(Kind::kUndefined) ? 0 : ToInt(context, precision, "a precision");
  const std::string_view how =
      method.is(Kind::kUndefined) ? "common" : Flat(context, ToText(context, method));
  if (how != "common" && how != "ceil" && how != "floor") {
    context.Fail({"round goes by 'common', 'ceil' or 'floor', not by '", how, "'"});
  }
  if (digits < -20 || digits > 20) {
    context.Fail("rounding to more than 20 digits is not supported");
  }
  // Fails if the value is not a number.
  const Value number = ApplySign(context, false, call.self);
  if (context.failed()) return {};
  const bool is_whole = number.is(Kind::kInt) || number.is(Kind::kNumeral);
  if (how == "common" && is_whole && digits >= 0) return number;
  if (number.is(Kind::kNumeral)) {
    context.Fail("a whole number of more than 64 bits cannot be rounded");
  }
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const double value = ToFloat(number);
  if (how != "common") {
    return Float((how == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) / scale);
  }
  if (digits < 0) {
    const double rounded = std::nearbyint(value * scale) / scale;
    return number.is(Kind::kInt) ? WholeOf(context, rounded) : Float(rounded);
  }
  std::array<char, 400> written;  // A double has no more than 309 digits before the point.
  const char* const written_end =
      std::to_chars(written.data(), written.data() + written.size(), value,
                    std::chars_format::fixed, static_cast<int>(digits))
          .ptr;
  return Float(ReadDouble({written.data(), written_end}).value_or(value));
}

Value TruncateText(Call& call) {
  Context& context = call.context;
  const auto& [length, kill_words, end, leeway] = call.parameters;
  const Text& text = SelfText(call);
  const std::string_view bytes = Flat(context, text);
  context.ChargeBytes(bytes.size());
  const Value dots = Trusted(context, "...");
  const Text& mark = end.is(Kind::kUndefined) ? *dots.text : ToText(context, end);
  const int64_t kept = length.is(Kind::kUndefined) ? 255 : ToInt(context, length, "a length");
  const int64_t slack = leeway.is_absent() ? 5 : ToInt(context, leeway, "the leeway");
  const auto mark_length = static_cast<int64_t>(CountCharacters(Flat(context, mark)));
  if (kept < mark_length || slack < 0) {
    context.Fail("truncate needs a length of at least its mark's, and no leeway below zero");
  }
  if (context.failed()) return {};
  if (static_cast<int64_t>(CountCharacters(bytes)) - kept <= slack) return String(&text);
  size_t cut = CharacterOffset(bytes, static_cast<size_t>(kept - mark_length));
  if (!IsTrue(kill_words)) cut = std::min(cut, bytes.substr(0, cut).rfind(' '));
  TextBuilder truncated(context);
  truncated.Add(*Slice(context, text, 0, cut).text);
  truncated.Add(text.is_markup ? *Escape(context, &mark) : mark);
  return truncated.Take(text.is_markup);
}

Value CountWords(Call& call) {
  const std::string_view bytes = Flat(call.context, SelfText(call));
  call.context.ChargeBytes(bytes.size());
  int64_t count = 0;
  bool in_word = false;
  for (size_t i = 0; i < bytes.size(); i += CharacterBytes(bytes.substr(i))) {
    const bool is_of_word = bytes[i] == '_' || IsAlphanumeric(CodeOf(bytes.substr(i)));
    if (is_of_word && !in_word) ++count;
    in_word = is_of_word;
  }
  return Int(count);
}

Value CenterText(Call& call) {
  const Value& width = call.parameters[0];
  return Pad(call.context, SelfText(call),
             width.is(Kind::kUndefined) ? 80 : ToInt(call.context, width, "a width"),
             Trusted(call.context, " "), true, true);
}

Value MarkSafe(Call& call) { return AsMarkup(call.context, SelfText(call)); }
Value EscapeText(Call& call) { return String(Escape(call.context, &SelfText(call))); }
Value ForceEscape(Call& call) {
  Text text = SelfText(call);
  text.is_markup = false;
  return String(Escape(call.context, &text));
}

// Adds the value with most bytes as %XX, for the path or the query of a URL.
void AddUrlEncoded(Context& context, const Value& value, bool in_query, TextBuilder* out) {
  // Behind the slash, which only paths have, are the hexadecimal digits.
  constexpr std::string_view kSafe =
      "/0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.-~";
  for (const Piece& piece : ToText(context, value).pieces) {
    const std::span<char> encoded = context.Array<char>(3 * piece.bytes.size());
    if (encoded.empty()) return;
    size_t size = 0;
    for (const char byte : piece.bytes) {
      const auto code = static_cast<uint8_t>(byte);
      if (byte == ' ' && in_query) {
        encoded[size++] = '+';
      } else if (kSafe.substr(in_query ? 1 : 0).contains(byte)) {
        encoded[size++] = byte;
      } else {
        encoded[size++] = '%';
        encoded[size++] = kSafe[1 + (code >> 4)];
        encoded[size++] = kSafe[1 + (code & 0xF)];
      }
    }
    context.ChargeBytes(size);
    out->Add({encoded.data(), size}, piece.is_trusted);
  }
}

Value UrlEncode(Call& call) {
  Context& context = call.context;
  TextBuilder out(context);
  if (call.self.is(Kind::kString) || !IsIterable(call.self)) {
    AddUrlEncoded(context, call.self, /*in_query=*/false, &out);
    return out.Take();
  }
  const Value pairs = call.self.is(Kind::kDict) ? ItemsFilter(call) : call.self;
  for (const Value& pair : Items(context, pairs)) {
    const auto items = Items(context, pair);
    if (items.size() != 2) context.Fail("urlencode needs pairs");
    if (context.failed()) break;
    if (!out.pieces().empty()) out.Add("&", true);
    AddUrlEncoded(context, items[0], /*in_query=*/true, &out);
    out.Add("=", true);
    AddUrlEncoded(context, items[1], /*in_query=*/true, &out);
  }
  return out.Take();
}

// Unlike value.name, this does not return values of a dictionary.
Value NamedAttribute(Call& call) {
  const std::string_view name = Flat(call.context, ToText(call.context, call.parameters[0]));
  if (!call.self.is(Kind::kDict) || FindDictMethod(name) != nullptr) {
    return GetAttribute(call.context, call.self, name);
  }
  return Undefined(call.context, name);
}

constexpr Native kFilters[] = {
    {"trim chars", TrimText},
    {"upper", UpperText},
    {"lower", LowerText},
    {"title", Title},
    {"capitalize", CapitalizeText},
    {"string", MakeString},
    {"replace old,new,count", ReplaceText},
    {"indent width,first,blank", IndentLines},
    {"length", Length},
    {"count", Length},
    {"default default_value,boolean", Default},
    {"d default_value,boolean", Default},
    {"int default,base", ToWholeNumber},
    {"float default", ToRealNumber},
    {"abs", Absolute},
    {"round precision,method", RoundNumber},
    {"truncate length,killwords,end,leeway", TruncateText},
    {"wordcount", CountWords},
    {"wordwrap width,break_long_words,wrapstring,break_on_hyphens", WrapWords},
    {"center width", CenterText},
    {"attr name", NamedAttribute},
    {"safe", MarkSafe},
    {"escape", EscapeText},
    {"e", EscapeText},
    {"forceescape", ForceEscape},
    {"tojson ensure_ascii,indent,separators,sort_keys", ToJson},
    {"urlencode", UrlEncode},
    {"format *", FormatFilter},
    {"batch linecount,fill_with", BatchFilter},
    {"slice slices,fill_with", SliceFilter},
    {"groupby attribute,default,case_sensitive", GroupByFilter},
    {"join d,attribute", JoinFilter},
    {"first", FirstFilter},
    {"last", LastFilter},
    {"list", ListFilter},
    {"items", ItemsFilter},
    {"dictsort case_sensitive,by,reverse", DictSortFilter},
    {"reverse", ReverseFilter},
    {"unique case_sensitive,attribute", UniqueFilter},
    {"sort reverse,case_sensitive,attribute", SortFilter},
    {"sum attribute,start", SumFilter},
    {"min case_sensitive,attribute", MinFilter},
    {"max case_sensitive,attribute", MaxFilter},
    {"map *", MapFilter},
    {"select *", SelectFilter},
    {"reject *", RejectFilter},
    {"selectattr *", SelectAttributeFilter},
    {"rejectattr *", RejectAttributeFilter},
};

}  // namespace

const Native* FindFilter(std::string_view name) { return FindNative(kFilters, name); }

}  // namespace cria::jinja
