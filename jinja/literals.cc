#include "jinja/literals.h"

#include <stdlib.h>  // strtod_l

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "core/utf8.h"
#include "jinja/c_locale.h"
#include "jinja/text.h"

namespace cria::jinja {
namespace {

constexpr std::string_view kSimpleEscapes = "ntrabfv\\'\"";
constexpr std::string_view kSimpleMeanings = "\n\t\r\a\b\f\v\\'\"";

// Adds the character after a backslash and removes it from `rest`; an unknown escape keeps its
// backslash.
void AddEscape(Context& context, std::string_view* rest, TextBuilder* out) {
  const char letter = rest->front();
  std::array<char, kMaxUtf8Bytes> buffer;
  uint32_t code = 0;
  if (const size_t at = kSimpleEscapes.find(letter); at != std::string_view::npos) {
    rest->remove_prefix(1);
    return out->Add(kSimpleMeanings.substr(at, 1), true);
  }
  if (letter == '\n') return rest->remove_prefix(1);
  if (letter >= '0' && letter <= '7') {
    TakeCode(rest, 3, 8, &code);
    return out->AddCopy(EncodeUtf8(code, &buffer));
  }
  if (letter == 'N') {
    return context.Fail(
        "a string names a character with '\\N', which is not supported; write the "
        "character itself, or '\\u' and its code");
  }
  const size_t digits = letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0) return out->Add("\\", true);
  rest->remove_prefix(1);
  const size_t before = rest->size();
  if (!TakeCode(rest, digits, 16, &code) || before - rest->size() != digits) {
    return context.Fail({"a string has '\\", {&letter, 1}, "' without enough digits"});
  }
  out->AddCopy(EncodeUtf8(code, &buffer));
}

}  // namespace

Value ReadString(Context& context, std::string_view written) {
  TextBuilder text(context);
  while (!written.empty() && !context.failed()) {
    const size_t escape = written.find('\\');
    text.Add(written.substr(0, escape), true);
    if (escape == std::string_view::npos || escape + 1 == written.size()) break;
    written.remove_prefix(escape + 1);
    AddEscape(context, &written, &text);
  }
  return text.Take();
}

bool TakeCode(std::string_view* rest, size_t max_digits, uint32_t base, uint32_t* code) {
  size_t taken = 0;
  for (; taken < std::min(max_digits, rest->size()); ++taken) {
    const size_t digit = kHexDigits.find(ToLower((*rest)[taken]));
    if (digit >= base) break;
    *code = *code * base + static_cast<uint32_t>(digit);
  }
  rest->remove_prefix(taken);
  return taken > 0;
}

std::optional<double> ReadDouble(std::string_view written) {
  // Used instead of from_chars, which libc++ before version 20 does not have for doubles. C also
  // reads hexadecimal digits, "nan(…)" and leading spaces, which are not numbers here.
  if (written.empty() || written.find_first_of("xX( \t\n\v\f\r") != written.npos) return {};
  const std::string text(written);
  char* end = nullptr;
  const double number = strtod_l(text.c_str(), &end, CLocale());
  return end == text.c_str() + text.size() ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> ReadWholeNumber(Context& context, std::string_view written, int64_t base) {
  const bool is_negative = written.starts_with('-');
  if (is_negative || written.starts_with('+')) written.remove_prefix(1);
  const char letter = written.size() > 1 && written[0] == '0' ? ToLower(written[1]) : ' ';
  const int prefix_base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (prefix_base != 0 && (base == 0 || base == prefix_base)) {
    base = prefix_base;
    written.remove_prefix(written.substr(2).starts_with('_') ? 3 : 2);
  } else if (base == 0) {
    base = 10;
    // Python refuses what C reads as octal.
    if (written.starts_with('0') && written.find_first_not_of("0_") != written.npos) return {};
  }
  if (base < 2 || base > 36 || written.empty()) return {};
  int64_t number = 0;
  bool overflow = false;
  bool after_digit = false;
  for (const char c : written) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const char lower = ToLower(c);
    const int64_t digit = c >= '0' && c <= '9'           ? c - '0'
                          : lower >= 'a' && lower <= 'z' ? lower - 'a' + 10
                                                         : base;
    if (digit >= base) return {};
    // There is one more negative number than positive ones.
    overflow = overflow || __builtin_mul_overflow(number, base, &number) ||
               __builtin_add_overflow(number, is_negative ? -digit : digit, &number);
    after_digit = true;
  }
  if (!after_digit) return {};
  if (overflow) context.Fail("a number is too large");
  return number;
}

Value ReadNumber(Context& context, std::string_view written, bool is_float) {
  if (!is_float && written.size() > 1 && IsLetter(written[1])) {
    if (const auto whole = ReadWholeNumber(context, written, 0)) return Int(*whole);
    context.Fail({"'", written, "' is not a number"});
    return {};
  }
  std::array<char, 64> digits;
  size_t size = 0;
  for (const char c : written) {
    if (c == '_') continue;
    if (size == digits.size()) {
      context.Fail("a number has too many digits");
      return {};
    }
    digits[size++] = c;
  }
  const char* const end = digits.data() + size;
  int64_t integer = 0;
  if (is_float) {
    if (const auto real = ReadDouble({digits.data(), size})) return Float(*real);
  } else if (const auto [stop, error] = std::from_chars(digits.data(), end, integer);
             error == std::errc() && stop == end) {
    return Int(integer);
  }
  context.Fail({"'", written, "' is too large for a number"});
  return {};
}

}  // namespace cria::jinja
