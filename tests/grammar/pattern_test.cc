#include "grammar/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/format.h"
#include "golden/test_data.h"
#include "grammar/expression_texts.h"
#include "grammar/pattern_parser.h"
#include "support/files.h"

namespace cria::grammar {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Examples {
  std::vector<std::string> matching;
  std::vector<std::string> others;
};

// In both encodings. If there are no matching examples, the pattern need not match any text.
void ExpectMatches(std::string_view pattern, bool anchored, const Examples& examples) {
  for (const auto encoding : {CharacterEncoding::kUtf8, CharacterEncoding::kJsonString}) {
    SCOPED_TRACE(std::string(pattern) + (anchored ? " (whole text)" : ""));
    ExpressionTexts texts;
    const auto node = ReadPattern(texts.expressions(), pattern, encoding, anchored);
    ASSERT_TRUE(node) << node.error().message();
    ASSERT_FALSE(texts.expressions().HasRule(*node));
    const auto begun = texts.Begin(*node);
    if (examples.matching.empty() && !begun) continue;
    ASSERT_TRUE(begun) << begun.error().message();
    const auto written = [encoding](const std::string& text) {
      return encoding == CharacterEncoding::kUtf8 ? text : JsonOf(text);
    };
    for (const std::string& text : examples.matching) {
      EXPECT_TRUE(texts.Matches(written(text))) << text;
    }
    for (const std::string& text : examples.others) {
      EXPECT_FALSE(texts.Matches(written(text))) << text;
    }
  }
}

void ExpectFound(std::string_view pattern, const Examples& examples) {
  ExpectMatches(pattern, false, examples);
}

void ExpectWhole(std::string_view pattern, const Examples& examples) {
  ExpectMatches(pattern, true, examples);
}

Error ErrorOf(std::string_view pattern) {
  ExpressionTexts texts;
  const auto node = ReadPattern(texts.expressions(), pattern, CharacterEncoding::kUtf8, false);
  if (node) {
    ADD_FAILURE() << pattern << " was read";
    return {ErrorCode::kInternal, ""};
  }
  return node.error();
}

void ExpectError(std::string_view pattern, size_t position, std::string_view part) {
  const Error error = ErrorOf(pattern);
  EXPECT_THAT(error.message(), StartsWith(Format("the pattern, byte {}: ", position))) << pattern;
  EXPECT_THAT(error.message(), HasSubstr(part)) << pattern;
}

TEST(PatternTest, IsFoundAnywhereUnlessAnchored) {
  ExpectFound("b+", {{"b", "abc", "bbb", "\nb\n"}, {"", "a", "B"}});
  ExpectWhole("b+", {{"b", "bbb"}, {"", "abc", "bb\n"}});
  ExpectFound("", {{"", "x", "é😀"}, {"\xFF"}});
  ExpectWhole("", {{""}, {"x"}});
  ExpectFound("^abc$", {{"abc"}, {"abc\n", "xabc", "abcx"}});
  ExpectWhole("a|bc", {{"a", "bc"}, {"ac", "abc", "b"}});
  ExpectFound("^a|b$", {{"a", "ax", "xb", "b"}, {"xa", "bx"}});
}

TEST(PatternTest, Characters) {
  ExpectWhole(".", {{"a", "é", "😀", " "}, {"\n", "\r", Utf8Of(0x2028), Utf8Of(0x2029), "ab"}});
  ExpectWhole(R"(\t\n\v\f\r\0\cA\ca\x41\u0042\u{43}\u{1F600}\uD83D\uDE00)",
              {{std::string("\t\n\v\f\r\0\1\1ABC😀😀", 19)}, {""}});
  ExpectWhole(R"(\/\-\@\ \.\*\é)", {{"/-@ .*é"}, {""}});
  ExpectWhole("a{b}]c{", {{"a{b}]c{"}, {""}});
  ExpectWhole("[a-cx\\-\\]]", {{"a", "b", "c", "x", "-", "]"}, {"d", "\\", ""}});
  ExpectWhole("[^a-c\\n]", {{"d", "é", "😀"}, {"a", "\n", "dd", ""}});
  ExpectWhole("[]", {{}, {"", "a"}});
  ExpectWhole("[^]", {{"a", "\n", "😀"}, {""}});
  ExpectWhole("[\\b\\0-\\x02]", {{"\b", std::string(1, '\0'), "\2"}, {"b", "\3"}});
  ExpectWhole("[\\w.-]+", {{"a_9.-"}, {"a b", ""}});
  ExpectWhole("[\\w-.]+", {{"a_9.-"}, {"a b", ""}});
  ExpectWhole("[+-\\d]+", {{"+-0"}, {",", "."}});
  ExpectWhole("[\\D]", {{"a"}, {"1"}});
  ExpectWhole("[^\\uD800-\\uDFFF]", {{"a", "😀"}, {""}});
  ExpectWhole("[\\u{1F600}-\\u{1F64F}]", {{"😀"}, {"a", "🙐"}});
  ExpectWhole("\\uD800", {{}, {"\xED\xA0\x80", "\xEF\xBF\xBD"}});
}

TEST(PatternTest, ClassesOfCharacters) {
  ExpectWhole("\\d", {{"0", "9"}, {"a", "߀", ""}});
  ExpectWhole("\\D", {{"a", "߀"}, {"0"}});
  ExpectWhole("\\w", {{"a", "Z", "_", "5"}, {"é", "-"}});
  ExpectWhole("\\W", {{"é", "-", "\n"}, {"a", "_"}});
  ExpectWhole("\\s", {{" ", "\t", "\n", Utf8Of(0xFEFF), Utf8Of(0x2003)}, {"a", Utf8Of(0x200B)}});
  ExpectWhole("\\S", {{"a", Utf8Of(0x200B)}, {" ", Utf8Of(0xA0)}});
  ExpectWhole("\\p{L}+", {{"aÉж中"}, {"a1", ""}});
  ExpectWhole("\\P{L}+", {{"1 -"}, {"a", ""}});
  ExpectWhole("[\\p{Lu}\\p{digit}_]+", {{"AÉ1߀_"}, {"a", "-"}});
  ExpectWhole("[^\\P{Letter}a]+", {{"bc"}, {"a", "1"}});
}

TEST(PatternTest, Quantifiers) {
  ExpectWhole("a{2}", {{"aa"}, {"a", "aaa"}});
  ExpectWhole("a{2,}", {{"aa", "aaaaa"}, {"a"}});
  ExpectWhole("a{1,3}", {{"a", "aaa"}, {"", "aaaa"}});
  ExpectWhole("a{0}b", {{"b"}, {"ab"}});
  ExpectWhole("(ab)*?c+?d??", {{"c", "ababccd"}, {"aba", "ababd"}});
  ExpectWhole("(?:a|)+", {{"", "aaa"}, {"b"}});
  ExpectWhole("(?<name>a)(?:b)(c)", {{"abc"}, {"ab"}});
  ExpectWhole("(a{1000}){1000}b|c", {{"c"}, {"b", "ab"}});
}

TEST(PatternTest, AnchorsInside) {
  ExpectFound("(^|,)a(,|$)", {{"a", "a,", "b,a", ",a,x"}, {"ba", "ab", ""}});
  ExpectFound("(?:^|;)(a|)b", {{"b", "ab", "x;b"}, {"xb", "a"}});
  ExpectFound("a^", {{}, {"a", ""}});
  ExpectFound("a*^b", {{"b", "bx"}, {"ab", "xb"}});
  ExpectFound("$a", {{}, {"a", ""}});
  ExpectFound("(?:a$|b)*c?$", {{"", "x", "bbc", "ba"}, {}});
  ExpectWhole("(?:(?:^|,)a)*", {{"", "a", "a,a", ",a,a"}, {"aa", "a,", ","}});
  ExpectWhole("(?:a(?:,|$))*", {{"", "a", "a,a", "a,"}, {"aa", ",a"}});
  ExpectWhole("(?:^a){2}", {{}, {"aa", "a"}});
  ExpectWhole("(?:^a?){2,5}", {{"", "a"}, {"aa"}});
}

TEST(PatternTest, WordBoundaries) {
  ExpectFound("\\bfoo\\b", {{"foo", "a foo.", "-foo\n", "éfooé"}, {"foob", "afoo", "_foo", "fo"}});
  ExpectFound("\\Boo", {{"foo", "xoox"}, {"oo", "-oo"}});
  ExpectWhole("\\w+\\b.*", {{"a", "abc ", "a.b"}, {"", ".a"}});
  ExpectWhole("(?:\\b\\w+\\b\\s*)+", {{"a", "ab cd  e", "a "}, {"", " a", "a.b"}});
  ExpectWhole("(?:ab|c-)*\\b", {{"ab", "abab", "c-ab"}, {"abc-", "", "c-"}});
  ExpectWhole("\\B", {{""}, {"a"}});
  ExpectWhole("\\b", {{}, {"", "a"}});
}

TEST(PatternTest, LookAhead) {
  ExpectFound("^(?=.*[A-Z])(?=.*\\d).{4,6}$",
              {{"aB1x", "1BBBBB"}, {"aB1", "abcd1", "ABCDE", "aB1xxxx", "aB1x\n"}});
  ExpectFound("^(?!.*foo)", {{"", "fo", "of\nfoo"}, {"foo", "xfoox"}});
  ExpectFound("a(?=b)", {{"ab", "xab"}, {"a", "acb"}});
  ExpectFound("a(?!b)", {{"a", "ac", "aab", "aba"}, {"ab", ""}});
  ExpectWhole("(?!null$|true$)[a-z]+", {{"nul", "nulls", "tru", "x"}, {"null", "true", ""}});
  ExpectWhole("(?=(?=a)\\w)[a-c]{2}|(?!)", {{"aa", "ac"}, {"ba", "a", ""}});
  ExpectWhole("(?:(?=a)a|b){0,3}", {{"", "aba", "bbb"}, {"aaaa", "c"}});
  ExpectWhole("(?:(?!ab).)*", {{"", "a", "ba", "bbaa"}, {"ab", "xaby"}});
  ExpectWhole("(?:(?!ab).)+", {{"a", "ba"}, {"", "ab", "bab"}});
  ExpectFound("^((?!foo|bar)[^,]){2,}$", {{"fo", "ba", "ofofo"}, {"f", "foo", "xxbar", "a,"}});
  ExpectWhole("(?:(?!a?).)*", {{""}, {"a", "b"}});
  ExpectFound("(?:(?!foo).)*", {{"", "foo"}, {"\xFF"}});
}

TEST(PatternTest, RefusesByName) {
  ExpectError("a(?<=b)", 1, "look-behind");
  ExpectError("(?<!b)", 0, "look-behind");
  ExpectError("(a)\\1", 3, "back references");
  ExpectError("(?<x>a)\\k<x>", 7, "back references");
  ExpectError("(?i:a)", 0, "begins so");
  ExpectError("(?P<x>a)", 0, "begins so");
  ExpectError("(?>a)", 0, "begins so");
  ExpectError("\\p{Script=Greek}", 0, "'Script=Greek'");
  ExpectError("[a\\P{Emoji}]", 2, "'Emoji'");
  ExpectError("[[:alpha:]]", 1, "[:alpha:]");
  ExpectError("(?:(?=a).)*b", 3, "look-ahead");
  ExpectError("^(?:(?!END).)*END$", 4, "look-ahead");
  ExpectError("a{1,4294967295}", 1, "1000000");
  EXPECT_EQ(ErrorOf("(?<=a)").code(), ErrorCode::kUnsupported);
}

TEST(PatternTest, SaysWhereItIsMalformed) {
  ExpectError("ab)", 2, "closes no group");
  ExpectError("a(b", 1, "not closed");
  ExpectError("é[b", 2, "not closed");
  ExpectError("[a-", 0, "not closed");
  ExpectError("[b-a]", 1, "comes after");
  ExpectError("*a", 0, "nothing before");
  ExpectError("a**", 2, "nothing before");
  ExpectError("a++", 2, "nothing before");
  ExpectError("(?=a)*", 5, "nothing before");
  ExpectError("^*", 1, "nothing before");
  ExpectError("{1}", 0, "nothing before");
  ExpectError("a{2,1}", 1, "larger");
  ExpectError("a{1", 1, "{m,n}");
  ExpectError("a{,2}", 1, "{m,n}");
  ExpectError("a\\", 1, "ends behind");
  ExpectError("\\Z", 0, "'\\Z'");
  ExpectError("[\\a]", 1, "'\\a'");
  ExpectError("\\01", 0, "octal");
  ExpectError("\\c1", 0, "letter");
  ExpectError("\\x4", 0, "two hexadecimal");
  ExpectError("\\u12g4", 0, "four hexadecimal");
  ExpectError("\\u{110000}", 0, "10FFFF");
  ExpectError("\\u{}", 0, "10FFFF");
  ExpectError("\\pL", 0, "\\p{");
  ExpectError("\\p{L", 0, "\\p{");
  ExpectError("(?<>a)", 0, "name");
  ExpectError("(?<a", 0, "name");
  ExpectError("ab\xFF", 2, "UTF-8");
}

std::string Repeated(std::string_view text, size_t count) {
  std::string repeated;
  for (size_t i = 0; i < count; ++i) repeated += text;
  return repeated;
}

TEST(PatternTest, HostilePatternsEndInASentence) {
  ExpectError(Repeated("(", 101) + Repeated(")", 101), 100, "deep");
  ExpectError(Repeated("(", 60'000), 100, "deep");
  ExpectError(Repeated("a", kMaxPatternBytes + 1), kMaxPatternBytes, "65536");
  EXPECT_THAT(ErrorOf(Repeated("[^\\P{L}a]", 5000)).message(), HasSubstr("ranges"));
  EXPECT_THAT(ErrorOf("(((\\ba?b?){1000}-){1000}){1000}").message(),
              HasSubstr("too many assertions"));
  EXPECT_THAT(ErrorOf(Repeated("(?!a*b)c", 1000)).message(), HasSubstr("too many assertions"));
}

TEST(PatternTest, LargePatternsAreRead) {
  ExpectWhole(Repeated("(?:", 90) + "a" + Repeated(")*", 90), {{"", "aa"}, {"b"}});
  ExpectWhole(Repeated("\\p{L}\\P{Lu}", 125), {{Repeated("a", 250)}, {Repeated("a", 249)}});
  ExpectWhole(Repeated("ab", 30'000), {{Repeated("ab", 30'000)}, {"ab"}});
  std::string words = "x";
  for (int i = 0; i < 5000; ++i) words += "|w" + std::to_string(i);
  ExpectWhole(words, {{"x", "w0", "w4999"}, {"w", "w5000"}});
}

TEST(PatternTest, TooLittleMemoryIsAnError) {
  size_t num_failures = 0;
  for (size_t bytes = 256; bytes < (size_t{1} << 20); bytes += bytes / 8 / 8 * 8) {
    ExpressionTexts texts(bytes);
    const auto node = ReadPattern(texts.expressions(), "^(?!x)(?:\\b\\p{Lu}+[^a]?)*(?:b|c$){2,9}",
                                  CharacterEncoding::kJsonString, false);
    if (!node) {
      EXPECT_EQ(node.error().code(), ErrorCode::kOutOfMemory) << bytes;
      ++num_failures;
    }
  }
  EXPECT_GT(num_failures, 5u);
}

// The patterns of the official test suite of JSON Schema.
TEST(PatternTest, JsonSchemaTestSuite) {
  CRIA_NEEDS_TEST_DATA("json-schema-test-suite");
  const auto folder = ExternalTestData() / "json-schema-test-suite/tests/draft2020-12";
  size_t num_tests = 0;
  for (const char* file :
       {"pattern.json", "optional/ecmascript-regex.json", "optional/non-bmp-regex.json"}) {
    const auto groups = nlohmann::json::parse(support::ReadFile(folder / file));
    for (const auto& group : groups) {
      if (!group["schema"].contains("pattern")) continue;
      Examples examples;
      for (const auto& test : group["tests"]) {
        if (!test["data"].is_string()) continue;
        const std::string text = test["data"].get<std::string>();
        (test["valid"].get<bool>() ? examples.matching : examples.others).push_back(text);
        ++num_tests;
      }
      ExpectFound(group["schema"]["pattern"].get<std::string>(), examples);
    }
  }
  EXPECT_GT(num_tests, 50u);
}

}  // namespace
}  // namespace cria::grammar
