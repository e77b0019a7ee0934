// Compares patterns with PCRE2: random patterns on random texts.

#include <gtest/gtest.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "grammar/expression_texts.h"
#include "grammar/pattern.h"

namespace cria::grammar {
namespace {

// Characters whose classes are the same in both dialects.
constexpr auto kTextCharacters = std::to_array<std::string_view>(
    {"a", "b", "_", "1", "-", " ", "\n", "\"", "\\", "é", "\xE2\x80\xA8", "😀"});

class RandomPattern {
 public:
  RandomPattern(std::mt19937& random, bool has_look_ahead)
      : random_(random), has_look_ahead_(has_look_ahead) {}

  std::string Choice(int depth) {
    std::string pattern = Sequence(depth);
    while (Chance(4)) pattern += "|" + (Chance(5) ? "" : Sequence(depth));
    return pattern;
  }

 private:
  bool Chance(uint32_t one_in) { return random_() % one_in == 0; }

  template <size_t kSize>
  std::string OneOf(const std::array<std::string_view, kSize>& options) {
    return std::string(options[random_() % kSize]);
  }

  std::string Sequence(int depth) {
    std::string pattern;
    const uint32_t count = 1 + random_() % 3;
    for (uint32_t i = 0; i < count; ++i) pattern += Term(depth);
    return pattern;
  }

  std::string Term(int depth) {
    static constexpr auto kAssertions = std::to_array<std::string_view>({"^", "$", "\\b", "\\B"});
    static constexpr auto kQuantifiers = std::to_array<std::string_view>(
        {"*", "+", "?", "{2}", "{1,}", "{0,2}", "*?", "+?", "??", "{0}", "{1,3}?"});
    if (Chance(5)) return OneOf(kAssertions);
    std::string atom = Atom(depth);
    if (atom.starts_with("(?=") || atom.starts_with("(?!")) return atom;
    return Chance(3) ? atom + OneOf(kQuantifiers) : atom;
  }

  std::string Atom(int depth) {
    static constexpr auto kAtoms = std::to_array<std::string_view>({"a",        "b",
                                                                    "a",        "b",
                                                                    "_",        "1",
                                                                    "\\-",      "é",
                                                                    "😀",       "\\n",
                                                                    "\\\\",     "\"",
                                                                    ".",        "\\w",
                                                                    "\\W",      "\\d",
                                                                    "\\D",      "\\s",
                                                                    "[^a]",     "[ab]",
                                                                    "[a-b\\d]", "[^\\w\\n]",
                                                                    "[é-😀]",   "\\p{L}",
                                                                    "\\P{Ll}",  "[\\x5C\\x00-1]"});
    static constexpr auto kGroups =
        std::to_array<std::string_view>({"(", "(?:", "(?<n>", "(?=", "(?!"});
    if (depth == 0 || !Chance(3)) return OneOf(kAtoms);
    std::string group = OneOf(kGroups);
    // PCRE2 wants names that differ.
    if (group == "(?<n>") group = "(?<n" + std::to_string(num_names_++) + ">";
    if (!has_look_ahead_ && (group == "(?=" || group == "(?!")) group = "(?:";
    return group + Choice(depth - 1) + ")";
  }

  std::mt19937& random_;
  bool has_look_ahead_;
  int num_names_ = 0;
};

std::string RandomText(std::mt19937& random) {
  std::string text;
  const uint32_t count = random() % 7;
  for (uint32_t i = 0; i < count; ++i) {
    // Mostly the first ones, so that words meet.
    text += kTextCharacters[random() % (random() % 3 == 0 ? kTextCharacters.size() : 5)];
  }
  return text;
}

struct FreePcre2 {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

using Pcre2Code = std::unique_ptr<pcre2_code, FreePcre2>;

Pcre2Code CompileWithPcre2(std::string pattern, bool anchored) {
  // The only character of the texts that is a space in ECMA-262 alone.
  static constexpr std::string_view kSpaces = "[\\s\\x{2028}]";
  for (size_t at = 0; (at = pattern.find("\\s", at)) != std::string::npos; at += kSpaces.size()) {
    pattern.replace(at, 2, kSpaces);
  }
  const std::unique_ptr<pcre2_compile_context, FreePcre2> context(
      pcre2_compile_context_create(nullptr));
  // `.` leaves out all line ends. The texts have no others than those of ECMA-262.
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_ANY);
  const uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_NO_AUTO_CAPTURE |
                           (anchored ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0);
  int error = 0;
  PCRE2_SIZE position = 0;
  Pcre2Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                               options, &error, &position, context.get()));
  EXPECT_NE(code, nullptr) << pattern << ": error " << error << " at " << position;
  return code;
}

bool FindsWithPcre2(const pcre2_code* code, const std::string& text) {
  const std::unique_ptr<pcre2_match_data, FreePcre2> data(pcre2_match_data_create(1, nullptr));
  const int answer = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                 data.get(), nullptr);
  EXPECT_TRUE(answer >= 0 || answer == PCRE2_ERROR_NOMATCH) << answer;
  return answer >= 0;
}

struct Outcomes {
  int num_refused = 0;      // Because of look-ahead in loops.
  int num_too_complex = 0;  // For expressions.
  int num_found = 0;        // Texts.
};

Outcomes CompareWithPcre2(uint32_t seed, int num_patterns, bool has_look_ahead) {
  Outcomes outcomes;
  std::mt19937 random(seed);
  for (int i = 0; i < num_patterns; ++i) {
    const std::string pattern = RandomPattern(random, has_look_ahead).Choice(3);
    const bool anchored = random() % 3 == 0;
    const auto encoding =
        random() % 2 == 0 ? CharacterEncoding::kUtf8 : CharacterEncoding::kJsonString;
    ExpressionTexts texts(size_t{1} << 20);
    const auto node = ReadPattern(texts.expressions(), pattern, encoding, anchored);
    if (!node) {
      EXPECT_TRUE(has_look_ahead && node.error().message().contains("look-ahead"))
          << pattern << "\n"
          << node.error().message();
      ++outcomes.num_refused;
      continue;
    }
    const auto begun = texts.Begin(*node);
    if (!begun && begun.error().code() != ErrorCode::kUsage) {
      ++outcomes.num_too_complex;
      continue;
    }
    const bool is_possible = begun.has_value();
    const Pcre2Code code = CompileWithPcre2(pattern, anchored);
    if (code == nullptr) return outcomes;
    for (int j = 0; j < 40; ++j) {
      const std::string text = RandomText(random);
      const bool found = FindsWithPcre2(code.get(), text);
      outcomes.num_found += found ? 1 : 0;
      const bool is_utf8 = encoding == CharacterEncoding::kUtf8;
      bool matches = false;
      if (is_possible) {
        const auto tried = texts.TryToMatch(is_utf8 ? text : JsonOf(text));
        if (!tried) {
          ++outcomes.num_too_complex;
          break;
        }
        matches = *tried;
      }
      EXPECT_EQ(matches, found) << "pattern: " << pattern << "\nanchored: " << anchored
                                << "\ntext: " << ::testing::PrintToString(text);
      if (::testing::Test::HasFailure()) return outcomes;
    }
  }
  return outcomes;
}

constexpr int kNumPatterns = 500;

TEST(PatternPcre2Test, FindsTheSameWithoutLookAhead) {
  const Outcomes outcomes = CompareWithPcre2(1, kNumPatterns, false);
  EXPECT_EQ(outcomes.num_refused, 0);
  EXPECT_LT(outcomes.num_too_complex, kNumPatterns / 100);
  EXPECT_GT(outcomes.num_found, kNumPatterns * 40 / 10);
  EXPECT_LT(outcomes.num_found, kNumPatterns * 40 * 9 / 10);
}

TEST(PatternPcre2Test, FindsTheSameWithLookAhead) {
  const Outcomes outcomes = CompareWithPcre2(2, kNumPatterns, true);
  EXPECT_LT(outcomes.num_refused, kNumPatterns / 3);
  EXPECT_LT(outcomes.num_too_complex, kNumPatterns / 100);
  EXPECT_GT(outcomes.num_found, kNumPatterns * 40 / 10);
}

}  // namespace
}  // namespace cria::grammar
