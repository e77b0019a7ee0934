#include "grammar/gbnf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/format.h"
#include "golden/test_data.h"
#include "grammar/expression_texts.h"
#include "support/files.h"
#include "support/paths.h"

namespace cria::grammar {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct GbnfExamples {
  std::vector<std::string> matching;
  std::vector<std::string> others;
};

void ExpectGrammar(std::string_view grammar, const GbnfExamples& examples) {
  ExpressionTexts texts;
  const auto root = ReadGbnf(texts.expressions(), grammar);
  ASSERT_TRUE(root) << root.error().message();
  const auto begun = texts.Begin(*root);
  ASSERT_TRUE(begun) << begun.error().message();
  for (const std::string& text : examples.matching) EXPECT_TRUE(texts.Matches(text)) << text;
  for (const std::string& text : examples.others) EXPECT_FALSE(texts.Matches(text)) << text;
}

Error GrammarError(std::string_view grammar) {
  ExpressionTexts texts;
  const auto root = ReadGbnf(texts.expressions(), grammar);
  if (root) {
    ADD_FAILURE() << grammar << "\nwas read";
    return {ErrorCode::kInternal, ""};
  }
  return root.error();
}

void ExpectGrammarError(std::string_view grammar, size_t line, size_t column,
                        std::string_view part) {
  const Error error = GrammarError(grammar);
  EXPECT_THAT(error.message(),
              StartsWith(Format("the grammar, line {}, column {}: ", line, column)))
      << grammar;
  EXPECT_THAT(error.message(), HasSubstr(part)) << grammar;
}

std::string Times(size_t count, std::string_view text) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

TEST(GbnfTest, LiteralsAndClasses) {
  ExpectGrammar("root ::= \"a\\n\\t\\r\\\\\\\"\\[\\]\\x41\\u00e9\\U0001F600 é\"",
                {{"a\n\t\r\\\"[]Aé😀 é"}, {"", "a"}});
  ExpectGrammar("root ::= [a-c\\n\\]\\x30-9é-] \"\"",
                {{"a", "c", "\n", "]", "0", "9", "é", "-"}, {"", "d", "\\", "ab"}});
  ExpectGrammar("root ::= [^a\\u00e9\\x85]", {{"b", "\n", "😀"}, {"a", "é", Utf8Of(0x85), ""}});
  ExpectGrammar("root ::= .", {{"b", "\n", "😀"}, {"", "ab"}});
  ExpectGrammar("root ::= [^]", {{"b", "\n"}, {""}});
  ExpectGrammar("root ::= \"a\nb\"", {{"a\nb"}, {"ab"}});
  ExpectGrammar("root ::= \"\\.\\-\" [\\^\\-]", {{".-^", ".--"}, {".-"}});
}

TEST(GbnfTest, SequencesAlternativesAndRepetitions) {
  ExpectGrammar("root ::= \"a\" \"b\" | \"c\"", {{"ab", "c"}, {"a", "abc", ""}});
  ExpectGrammar("root ::= | \"a\" |", {{"", "a"}, {"b"}});
  ExpectGrammar("root::=(\"a\"|\"b\")*\"c\"+[d]?", {{"c", "abcc", "cd"}, {"", "ab", "cdd"}});
  ExpectGrammar("root ::= \"ab\"{2} [c] {1,} \"x\"{ 0 , 2 }",
                {{"ababc", "ababccxx"}, {"abc", "ababcxxx"}});
  ExpectGrammar("root ::= \"a\" * \"b\" +?", {{"", "a", "abb"}, {"ba"}});
  ExpectGrammar("root ::= \"a\"{0,1000000}", {{"", "aaa"}, {"b"}});
}

TEST(GbnfTest, RulesAndLines) {
  ExpectGrammar(
      "# a list\r\n\r\nroot ::= item+ # items\n\n  item ::=\n  \"- \" text-1 \"\\n\" |\n"
      "\n # more\n \"* \"\ntext-1 ::= (\n  [a-z] # small\n\n  | [A-Z]\n  {2} )*\n",
      {{"- a\n", "* - bc\n", "- ABc\n"}, {"", "-", "- A\n"}});
  ExpectGrammar("root ::= a_B\na_B ::= \"x\"", {{"x"}, {""}});
  ExpectGrammar("root ::= \"(\" root \")\" | \"\"", {{"", "(())"}, {"(", "())"}});
  ExpectGrammar("value ::= \"1\" | \"[\" value (\",\" value)* \"]\"\nroot ::= value",
                {{"1", "[1,[1]]"}, {"[]", "[1"}});
  // A rule that nothing uses may be left-recursive.
  ExpectGrammar("root ::= \"a\"\nb ::= b \"c\" | \"d\"", {{"a"}, {"d"}});
}

TEST(GbnfTest, ValuesOfASchema) {
  ExpectGrammar(
      "root ::= \"n=\" %json {\"type\": \"integer\"} \";\" item*\n"
      "item ::= any\nany ::= %json{\"const\": \"}\\\"{\"} | list\n"
      "list ::= \"<\" any* \">\"",
      {.matching = {"n=12;", "n=-1;\"}\\\"{\"", "n=0;<<>\"}\\\"{\">"},
       .others = {"n=x;", "n=1", "n=1;<", "n=1;}"}});
  ExpectGrammarError("root ::= %json", 1, 10, "a schema");
  ExpectGrammarError("root ::= %json {\"type\": \"integer\"", 1, 10, "a schema");
  ExpectGrammarError("root ::= \"a\" %json {\"type\": \"no\"}", 1, 14, "type");
}

TEST(GbnfTest, DeepRecursion) {
  ExpectGrammar("root ::= \"(\" root \")\" | \"x\"", {{Times(1000, "(") + "x" + Times(1000, ")")},
                                                      {Times(1000, "(") + "x" + Times(999, ")")}});
}

TEST(GbnfTest, SaysWhereItIsMalformed) {
  ExpectGrammarError("", 1, 1, "no rule 'root");
  ExpectGrammarError("a ::= \"b\"\n", 1, 1, "no rule 'root");
  ExpectGrammarError("root ::= \"é\" b\nc ::= d", 1, 14, "no rule 'b'");
  ExpectGrammarError("root ::= \"a\"\nb ::= [a] # é\n  c ::= [a] undefined", 3, 13, "'undefined'");
  ExpectGrammarError("root ::= \"a\"\nroot ::= \"b\"", 2, 1, "already");
  ExpectGrammarError("root \"a\"", 1, 6, "'::='");
  ExpectGrammarError("root ::= \"a\"\n\"b\"", 2, 1, "a rule is expected");
  ExpectGrammarError("root ::= \"a\n", 1, 10, "not closed");
  ExpectGrammarError("root ::= [a", 1, 10, "not closed");
  ExpectGrammarError("root ::= [b-a]", 1, 11, "comes after");
  ExpectGrammarError("root ::= []", 1, 10, "no characters");
  ExpectGrammarError("root ::= (\"a\"", 1, 10, "not closed");
  ExpectGrammarError("root ::= \"a\")", 1, 13, "closes no group");
  ExpectGrammarError("root ::= (\"a\"\nb ::= \"c\"", 2, 1, "not closed before");
  ExpectGrammarError("root ::= \"a\" b ::= \"c\"", 1, 14, "own line");
  ExpectGrammarError("root ::= (%)", 1, 11, "expected here");
  ExpectGrammarError("root ::= %", 1, 10, "expected here");
  ExpectGrammarError("root ::= *", 1, 10, "nothing before");
  ExpectGrammarError("root ::= (+)", 1, 11, "nothing before");
  ExpectGrammarError("root ::= \"a\"{2,1}", 1, 13, "larger");
  ExpectGrammarError("root ::= \"a\"{,1}", 1, 13, "{m,n}");
  ExpectGrammarError("root ::= \"a\"{1", 1, 13, "{m,n}");
  ExpectGrammarError("root ::= \"a\"{1,4294967295}", 1, 13, "1000000");
  ExpectGrammarError("root ::= \"a\"{99999999999999999999}", 1, 13, "1000000");
  ExpectGrammarError("root ::= \"a\\q\"", 1, 12, "'\\q'");
  ExpectGrammarError("root ::= \"\\x4\"", 1, 11, "hexadecimal");
  ExpectGrammarError("root ::= [\\U00110000]", 1, 11, "10FFFF");
  ExpectGrammarError("root ::= [\\UFFFFFFFF]", 1, 11, "10FFFF");
  ExpectGrammarError("root ::= \"\\uD83D\"", 1, 11, "surrogate");
  ExpectGrammarError("root ::= <think>", 1, 10, "tokens");
  ExpectGrammarError("root ::= !<[10]>", 1, 10, "tokens");
  ExpectGrammarError("root ::= \"\xFF\"", 1, 11, "UTF-8");
}

TEST(GbnfTest, RefusesRulesThatCannotBeFollowed) {
  ExpectGrammarError("root ::= a\na ::= a \"b\" | \"c\"", 2, 1, "'a' can begin with itself");
  ExpectGrammarError("root ::= \"x\"? b\n b ::= [y]* root", 2, 2, "'b' can begin with itself");
  ExpectGrammarError("root ::= \"a\" b | \"d\"\nb ::= \"c\" b", 2, 1, "'b' never ends");
}

TEST(GbnfTest, HostileGrammarsEndInASentence) {
  ExpectGrammarError("root ::= " + Times(201, "(") + Times(201, ")"), 1, 9 + 201, "deep");
  ExpectGrammarError("root ::= " + Times(200'000, "("), 1, 9 + 201, "deep");
  ExpectGrammarError(Times(1 << 20, "#"), 1, (1 << 18) + 1, "262144");
  std::string rules;
  for (int i = 0; i < 20'000; ++i) rules += Format("a{}::=.\n", i);
  EXPECT_THAT(GrammarError(rules).message(), HasSubstr("16384 rules"));
}

TEST(GbnfTest, LargeGrammarsAreRead) {
  std::string rules = "root ::= a0\n";
  for (int i = 0; i < 8000; ++i) rules += Format("a{} ::= \"b\" a{}\n", i, i + 1);
  rules += "a8000 ::= \"c\"\n";
  ExpectGrammar(rules, {{Times(8000, "b") + "c"}, {"c"}});
  ExpectGrammar("root ::= (([a]{1000}){1000}){1000} | \"b\"", {{"b"}, {"a"}});
  ExpectGrammar("root ::= \"" + Times(100'000, "a") + "\"", {{Times(100'000, "a")}, {"a"}});
}

TEST(GbnfTest, TooLittleMemoryIsAnError) {
  size_t num_failures = 0;
  for (size_t bytes = 256; bytes < (size_t{1} << 18); bytes += bytes / 8 / 8 * 8) {
    ExpressionTexts texts(bytes);
    const auto root = ReadGbnf(
        texts.expressions(), "root ::= (a | [^é-ж])* \"text\" b{3,5}\na ::= b \"x\"\nb ::= [0-9]+");
    if (!root) {
      EXPECT_EQ(root.error().code(), ErrorCode::kOutOfMemory) << bytes;
      ++num_failures;
    }
  }
  EXPECT_GT(num_failures, 2u);
}

// The grammar of a file matches these texts.
void ExpectGrammarFile(const std::filesystem::path& folder, const char* name,
                       const GbnfExamples& examples) {
  SCOPED_TRACE(name);
  ExpectGrammar(support::ReadFile(folder / name), examples);
}

TEST(GbnfTest, OwnGrammars) {
  const auto expect = [](const char* name, const GbnfExamples& examples) {
    ExpectGrammarFile(support::SourcePath("tests/grammar/examples"), name, examples);
  };
  expect("calculator.gbnf", {{"1 = 1\n", "2*(3 - 4.5)%7 = 0.25\n"}, {"", "1=1\n", "01 = 1\n"}});
  expect("commands.gbnf", {{"GET A", "DEL A B_1 C", "SET X=\"a\\n\\\"é\"", "SET _=\"\""},
                           {"GET", "GET a", "SET X=a", "SET X=\"\n\"", "SET X=\"\\x\"", "DEL A "}});
  expect("greetings.gbnf", {{"Καλημέρα!", "Привет, мир", "こんにちは。", "カタカナー", "😀🙏"},
                            {"", "Hello!", "Привет,мир", "こ a", "😀😀😀😀", "🌍"}});
  expect("moves.gbnf", {{"Ta1-b2 / c3xd4!?", "a1-a2 / resigns\nHb1xb2! / a2-a3"},
                        {"", "Ta1-b2", "a1-f2 / a1-a2", "a1-a2 / a1-a2\n", "resigns / a1-a2"}});
  expect("recipe.gbnf", {{"# Soup\n\n* 2 leeks\n* 500 ml water\n\n1. Cut.\n",
                          "# Käse-Brot\n\n* 20 g Käse, fein\n\n1. Öffne "
                          "es, dann iss.\n2. Ende.\n"},
                         {"", "# Soup\n\n\n1. Cut.\n", "# Soup\n\n* 2 leeks\n\n1. cut.\n"}});
  expect("records.gbnf", {{R"({"id":"0123abcd-00ff","name":"x"})"}, {"", "{}", R"({"name":"x"})"}});
  expect("timetable.gbnf", {{"Monday: 08:00–12:30, 13:15–23:55\nSunday: closed\n"},
                            {"", "Monday: 24:00–24:05\n", "Monday:\n", "Tuesday: 08:00-09:00\n"}});
}

// The grammars that llama.cpp comes with, which are external test data.
TEST(GbnfTest, GrammarsAsPeopleWriteThem) {
  CRIA_NEEDS_TEST_DATA("grammars");
  const auto folder = ExternalTestData() / "grammars";
  const auto expect = [&folder](const char* name, const GbnfExamples& examples) {
    ExpectGrammarFile(folder, name, examples);
  };
  expect("arithmetic.gbnf",
         {{"a+1=2\n", "x = 3 \ny*(z-1)=4\n"}, {"", "a=2", "1+=2\n", "a=b=c\n", "(a)=(b)"}});
  expect("c.gbnf",
         {{"", "int f(){}", "int main(int a){return a;}", "float g(){if(a<b){f ();}else{}}"},
          {"int", "int f(){", "x", "int f(){return ;}"}});
  expect("chess.gbnf", {{"1. e4 e5\n2. Nf3 Nc6\n", "1. O-O O-O-O\n10. exd5 Qxd5+\n"},
                        {"", "1. e4 e5\n", "1. e9 e5\n2. a1 a2\n", "2. e4 e5\n3. e4 e5\n"}});
  expect("english.gbnf", {{"Hello, world!", "a\tb\nc", "[x]^_`{|}~\\"}, {"", " a", "a  b", "é"}});
  expect("japanese.gbnf", {{"こんにちは、世界", "カタカナ ひらがな"}, {"", "abc", "は  は"}});
  expect("json.gbnf",
         {{"{}", "{\"a\":1}", "{\"a\": [1, -2.5e+12, \"x\\n\\u00e9é\", {}], \"b\":true}",
           "{\n  \"a\":null}"},
          {"", "[]", "{\"a\"}", "{\"a\":1,}", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":01}"}});
  expect("json_arr.gbnf", {{"[\n1,\n{\"a\": []}]", "[\n]"}, {"[]", "[1]", "{}", "[\n1, 2]"}});
  expect("list.gbnf", {{"- a\n", "- a b\n- é\n"}, {"", "- \n", "- a", "* a\n", "- a\rb\n"}});
}

}  // namespace
}  // namespace cria::grammar
