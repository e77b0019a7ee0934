#include "grammar/character_classes.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace cria::grammar {
namespace {

// The names of the general categories, in the order of their numbers in utf8proc; then those of
// kCategoryGroups. Names of one category have spaces between them (PropertyValueAliases.txt of the
// Unicode character database).
constexpr std::string_view kCategoryNames =
    "Cn Unassigned;"
    "Lu Uppercase_Letter;Ll Lowercase_Letter;Lt Titlecase_Letter;Lm Modifier_Letter;"
    "Lo Other_Letter;"
    "Mn Nonspacing_Mark;Mc Spacing_Mark;Me Enclosing_Mark;"
    "Nd Decimal_Number digit;Nl Letter_Number;No Other_Number;"
    "Pc Connector_Punctuation;Pd Dash_Punctuation;Ps Open_Punctuation;Pe Close_Punctuation;"
    "Pi Initial_Punctuation;Pf Final_Punctuation;Po Other_Punctuation;"
    "Sm Math_Symbol;Sc Currency_Symbol;Sk Modifier_Symbol;So Other_Symbol;"
    "Zs Space_Separator;Zl Line_Separator;Zp Paragraph_Separator;"
    "Cc Control cntrl;Cf Format;Cs Surrogate;Co Private_Use;"
    "LC Cased_Letter;L Letter;M Mark Combining_Mark;N Number;P Punctuation punct;S Symbol;"
    "Z Separator;C Other;Any;Assigned;";

constexpr uint32_t kNumCategories = 30;

constexpr uint32_t CategoriesFrom(uint32_t first, uint32_t last) {
  return (2u << last) - (1u << first);
}

// Sets of categories, one bit for each.
constexpr auto kCategoryGroups = std::to_array<uint32_t>({
    CategoriesFrom(UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LT),
    CategoriesFrom(UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO),
    CategoriesFrom(UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME),
    CategoriesFrom(UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO),
    CategoriesFrom(UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO),
    CategoriesFrom(UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO),
    CategoriesFrom(UTF8PROC_CATEGORY_ZS, UTF8PROC_CATEGORY_ZP),
    CategoriesFrom(UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO) | 1u << UTF8PROC_CATEGORY_CN,
    CategoriesFrom(0, kNumCategories - 1),
    CategoriesFrom(1, kNumCategories - 1),
});

// The categories of that name; 0 if there are none.
uint32_t CategoriesOfName(std::string_view name) {
  std::string_view rest = kCategoryNames;
  for (size_t i = 0; !rest.empty(); ++i) {
    std::string_view names = rest.substr(0, rest.find(';'));
    rest.remove_prefix(names.size() + 1);
    while (!names.empty()) {
      const std::string_view known = names.substr(0, names.find(' '));
      if (known == name) return i < kNumCategories ? 1u << i : kCategoryGroups[i - kNumCategories];
      names.remove_prefix(std::min(known.size() + 1, names.size()));
    }
  }
  return 0;
}

}  // namespace

void CharacterSet::Add(const CharacterSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CharacterSet::Normalize() {
  // Has less code than std::sort.
  const auto comes_before = [](const CodePointRange& a, const CodePointRange& b) {
    return a.first < b.first;
  };
  std::make_heap(ranges_.begin(), ranges_.end(), comes_before);
  std::sort_heap(ranges_.begin(), ranges_.end(), comes_before);
  size_t size = 0;
  for (const CodePointRange& range : ranges_) {
    if (size > 0 && range.first <= ranges_[size - 1].last + 1) {
      ranges_[size - 1].last = std::max(ranges_[size - 1].last, range.last);
    } else {
      ranges_[size++] = range;
    }
  }
  ranges_.resize(size);
}

void CharacterSet::Complement() {
  CharacterSet others;
  uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) others.Add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= kMaxCodePoint) others.Add(next, kMaxCodePoint);
  ranges_.swap(others.ranges_);
}

CharacterSet CharacterSet::Intersection(const CharacterSet& other) const {
  CharacterSet both;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const uint32_t first = std::max(a->first, b->first);
    const uint32_t last = std::min(a->last, b->last);
    if (first <= last) both.Add(first, last);
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return both;
}

CharacterSet DigitCharacters() {
  static constexpr auto kRanges = std::to_array<CodePointRange>({{'0', '9'}});
  return CharacterSet(kRanges);
}

CharacterSet WordCharacters() {
  static constexpr auto kRanges =
      std::to_array<CodePointRange>({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return CharacterSet(kRanges);
}

// ECMA-262, WhiteSpace and LineTerminator: the category Zs is a part of it.
CharacterSet SpaceCharacters() {
  static constexpr auto kRanges = std::to_array<CodePointRange>({{'\t', '\r'},
                                                                 {' ', ' '},
                                                                 {0xA0, 0xA0},
                                                                 {0x1680, 0x1680},
                                                                 {0x2000, 0x200A},
                                                                 {0x2028, 0x2029},
                                                                 {0x202F, 0x202F},
                                                                 {0x205F, 0x205F},
                                                                 {0x3000, 0x3000},
                                                                 {0xFEFF, 0xFEFF}});
  return CharacterSet(kRanges);
}

CharacterSet LineTerminators() {
  static constexpr auto kRanges =
      std::to_array<CodePointRange>({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}});
  return CharacterSet(kRanges);
}

void UnicodeProperties::FindRuns(uint32_t first, uint32_t last) {
  for (uint32_t code_point = first; code_point <= last; ++code_point) {
    const auto category = static_cast<uint32_t>(
        utf8proc_get_property(static_cast<utf8proc_int32_t>(code_point))->category);
    if (runs_.empty() || runs_.back().category != category) {
      runs_.push_back({code_point, category});
    }
  }
}

void UnicodeProperties::AddCategories(uint32_t categories, CharacterSet* set) {
  if (runs_.empty()) {
    // A third of all code points tells where each category is: no character is planned for planes 4
    // to 13, plane 14 has a few at its beginning, and planes 15 and 16 are for private use, but for
    // the last two code points of each.
    FindRuns(0, 0x3FFFF);
    FindRuns(0xE0000, 0xE0FFF);
    for (const uint32_t plane : {0xF0000u, 0x100000u}) {
      FindRuns(plane, plane);
      FindRuns(plane + 0xFFFD, plane + 0xFFFF);
    }
  }
  for (size_t i = 0; i < runs_.size(); ++i) {
    const Run& run = runs_[i];
    if ((categories >> run.category & 1) == 0) continue;
    set->Add(run.first, i + 1 < runs_.size() ? runs_[i + 1].first - 1 : kMaxCodePoint);
  }
}

bool UnicodeProperties::Add(std::string_view name, CharacterSet* set) {
  if (name == "ASCII") {
    set->Add(0, 0x7F);
    return true;
  }
  if (name == "ASCII_Hex_Digit" || name == "AHex") {
    set->Add('0', '9');
    set->Add('A', 'F');
    set->Add('a', 'f');
    return true;
  }
  const size_t equals = name.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view property = name.substr(0, equals);
    if (property != "General_Category" && property != "gc") return false;
    name.remove_prefix(equals + 1);
    if (name == "Any" || name == "Assigned") return false;
  }
  const uint32_t categories = CategoriesOfName(name);
  if (categories == 0) return false;
  AddCategories(categories, set);
  return true;
}

}  // namespace cria::grammar
