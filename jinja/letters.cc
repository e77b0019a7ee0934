#include "jinja/letters.h"

#include <utf8proc.h>

#include <algorithm>
#include <string_view>

namespace cria::jinja {
namespace {

utf8proc_category_t CategoryOf(char32_t c) { return utf8proc_category(static_cast<int32_t>(c)); }

bool IsBetween(utf8proc_category_t category, utf8proc_category_t first, utf8proc_category_t last) {
  return category >= first && category <= last;
}

// The first of several characters that count as digits although they are not decimal, times 256,
// and their number.
constexpr std::array<uint32_t, 20> kOtherDigits = {
    0xB202,   0xB901,   0x136909,  0x19DA01,  0x207001,  0x207406, 0x20800A,
    0x246009, 0x247409, 0x248809,  0x24EA01,  0x24F509,  0x24FF01, 0x277609,
    0x278009, 0x278A09, 0x10A4004, 0x10E6009, 0x1105209, 0x1F1000B};

// Ideographs below U+10000 that are numbers.
constexpr std::u16string_view kNumberIdeographs =
    u"\u3405\u3483\u382A\u3B4D\u4E00\u4E03\u4E07\u4E09\u4E5D\u4E8C\u4E94\u4E96\u4EBF\u4EC0\u4EDF"
    u"\u4EE8\u4F0D\u4F70\u5104\u5146\u5169\u516B\u516D\u5341\u5343\u5344\u5345\u534C\u53C1\u53C2"
    u"\u53C3\u53C4\u56DB\u58F1\u58F9\u5E7A\u5EFE\u5EFF\u5F0C\u5F0D\u5F0E\u5F10\u62FE\u634C\u67D2"
    u"\u6F06\u7396\u767E\u8086\u842C\u8CAE\u8CB3\u8D30\u9621\u9646\u964C\u9678\u96F6\uF96B\uF973"
    u"\uF978\uF9B2\uF9D1\uF9D3\uF9FD";

// Characters that are in lower case without having a letter in upper case: the first and the last.
constexpr std::u16string_view kOtherLower =
    u"\u00AA\u00AA\u00BA\u00BA\u02B0\u02B8\u02C0\u02C1\u02E0\u02E4\u037A\u037A\u1D2C\u1D6A"
    u"\u1D78\u1D78\u1D9B\u1DBF\u2071\u2071\u207F\u207F\u2090\u209C\u2C7C\u2C7D\uA69C\uA69D"
    u"\uA770\uA770\uA7F8\uA7F9\uAB5C\uAB5F";

constexpr std::u16string_view kIgnorablePunctuation =
    u"'.:\u00B7\u0387\u055F\u05F4\u2018\u2019\u2024\u2027\uFE13\uFE52\uFE55\uFF07\uFF0E\uFF1A";

bool Contains(std::u16string_view characters, char32_t c) {
  return c < 0x10000 && characters.contains(static_cast<char16_t>(c));
}

bool IsOtherLower(char32_t c) {
  for (size_t i = 0; i < kOtherLower.size(); i += 2) {
    if (c >= kOtherLower[i] && c <= kOtherLower[i + 1]) return true;
  }
  return false;
}

// Letters in circles and squares, of which there are only capital ones.
bool IsEnclosedCapital(char32_t c) {
  return c >= 0x1F130 && c <= 0x1F189 && (c - 0x1F130) % 32 < 26;
}

}  // namespace

bool IsAlpha(char32_t c) {
  return IsBetween(CategoryOf(c), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool IsDecimal(char32_t c) { return CategoryOf(c) == UTF8PROC_CATEGORY_ND; }

bool IsAnyDigit(char32_t c) {
  return IsDecimal(c) || std::ranges::any_of(kOtherDigits, [&](uint32_t range) {
           return c >= range >> 8 && c < (range >> 8) + (range & 0xFF);
         });
}

bool IsNumeric(char32_t c) {
  return IsBetween(CategoryOf(c), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO) ||
         Contains(kNumberIdeographs, c);
}

bool IsPrintable(char32_t c) {
  const utf8proc_category_t category = CategoryOf(c);
  return c == ' ' || !(category == UTF8PROC_CATEGORY_CN ||
                       IsBetween(category, UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_CO));
}

CaseOf FindCase(char32_t c) {
  const auto code = static_cast<int32_t>(c);
  const utf8proc_category_t category = CategoryOf(c);
  if (category == UTF8PROC_CATEGORY_LU) return CaseOf::kUpper;
  if (category == UTF8PROC_CATEGORY_LT) return CaseOf::kTitle;
  if (category == UTF8PROC_CATEGORY_LL || utf8proc_toupper(code) != code || IsOtherLower(c)) {
    return CaseOf::kLower;
  }
  const bool is_upper = utf8proc_tolower(code) != code || IsEnclosedCapital(c);
  return is_upper ? CaseOf::kUpper : CaseOf::kNone;
}

bool IsCaseIgnorable(char32_t c) {
  switch (CategoryOf(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return Contains(kIgnorablePunctuation, c);
  }
}

// utf8proc maps one character to one. The mappings to several, in Unicode's SpecialCasing.txt, are
// those of the letters that case folding, for which utf8proc has all of them, writes as several.
MappedCharacters MapCase(char32_t c, CaseMapping mapping) {
  constexpr char32_t kDottedCapitalI = 0x130;
  constexpr char32_t kSharpS = 0xDF;
  constexpr int32_t kIota = 0x3B9;
  constexpr int32_t kIotaSubscript = 0x345;
  const auto code = static_cast<int32_t>(c);
  MappedCharacters mapped = {.characters = {code}, .size = 1};
  auto& characters = mapped.characters;
  if (mapping == CaseMapping::kLower) {
    characters[0] = utf8proc_tolower(code);
    if (c == kDottedCapitalI) mapped = {.characters = {'i', 0x307}, .size = 2};
    return mapped;
  }
  mapped.size = static_cast<size_t>(utf8proc_decompose_char(
      code, characters.data(), MappedCharacters::kMax, UTF8PROC_CASEFOLD, nullptr));
  if (mapping == CaseMapping::kFold) return mapped;
  const bool is_title = mapping == CaseMapping::kTitle;
  const int32_t one = is_title ? utf8proc_totitle(code) : utf8proc_toupper(code);
  const utf8proc_category_t category = CategoryOf(c);
  if (mapped.size == 1 || category == UTF8PROC_CATEGORY_LU ||
      (is_title && ((one != code && c != kSharpS) || category == UTF8PROC_CATEGORY_LT))) {
    return {.characters = {one}, .size = 1};
  }
  for (size_t i = 0; i < mapped.size; ++i) {
    const int32_t upper = utf8proc_toupper(characters[i]);
    const bool is_changed = upper != characters[i];
    characters[i] = upper;
    if (!is_title || !is_changed) continue;
    // A title has one capital letter.
    if (characters[mapped.size - 1] == kIota) characters[mapped.size - 1] = kIotaSubscript;
    break;
  }
  return mapped;
}

}  // namespace cria::jinja
