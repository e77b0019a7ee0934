#include "grammar/expressions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "naive_grammar.h"

namespace cria::grammar {
namespace {

using testing::HasSubstr;
constexpr Node kNothing = Expressions::kNothing;
constexpr Node kEmpty = Expressions::kEmpty;
constexpr Node kEverything = Expressions::kEverything;
using ProblemKind = Expressions::RuleProblem::Kind;

class ExpressionsTest : public testing::Test {
 protected:
  std::vector<std::byte> memory_ = std::vector<std::byte>(size_t{1} << 20);
  Expressions expressions_{memory_};

  Node Letters(std::string_view letters) {
    ByteSet set;
    for (const char letter : letters) set.Add(static_cast<uint8_t>(letter));
    return expressions_.Bytes(set);
  }
  Node Star(Node node) { return expressions_.Repeat(node, 0, kUnbounded); }

  // Steps through derivatives.
  bool Matches(Node node, std::string_view text) {
    for (const char byte : text) node = expressions_.Derive(node, static_cast<uint8_t>(byte));
    EXPECT_TRUE(expressions_.status()) << expressions_.status().error().message();
    return expressions_.MatchesEmpty(node);
  }
};

TEST_F(ExpressionsTest, EqualExpressionsAreEqualNodes) {
  Expressions& e = expressions_;
  const Node a = e.Byte('a'), b = e.Byte('b'), c = e.Byte('c');
  EXPECT_EQ(e.Choice(a, b), Letters("ba"));
  EXPECT_EQ(e.Choice(e.Text("xa"), e.Choice(e.Text("yb"), e.Text("zc"))),
            e.Choice(e.Choice(e.Text("zc"), e.Text("xa")), e.Choice(e.Text("xa"), e.Text("yb"))));
  EXPECT_EQ(e.Sequence(e.Sequence(a, b), c), e.Sequence(a, e.Sequence(b, c)));
  EXPECT_EQ(e.Sequence(a, kNothing), kNothing);
  EXPECT_EQ(e.Sequence(kEmpty, e.Sequence(a, kEmpty)), a);
  EXPECT_EQ(e.Choice(std::vector<Node>{}), kNothing);
  EXPECT_EQ(e.Choice(a, kNothing), a);
  EXPECT_EQ(e.Choice(a, kEverything), kEverything);
  EXPECT_EQ(e.Both(a, kEverything), a);
  EXPECT_EQ(e.Both(a, b), kNothing);
  EXPECT_EQ(e.Both(kEmpty, a), kNothing);
  EXPECT_EQ(e.Both(Star(a), kEmpty), kEmpty);
  EXPECT_EQ(e.Not(e.Not(a)), a);
  EXPECT_EQ(e.Not(kNothing), kEverything);
  EXPECT_EQ(e.Not(kEverything), kNothing);
  EXPECT_EQ(e.Repeat(a, 1, 1), a);
  EXPECT_EQ(e.Repeat(a, 0, 0), kEmpty);
  EXPECT_EQ(e.Repeat(a, 2, 1), kNothing);
  EXPECT_EQ(Star(Star(a)), Star(a));
  EXPECT_EQ(e.Sequence(Star(a), Star(a)), Star(a));
  // Numbers of the same become one, if none is missing.
  EXPECT_EQ(e.Choice(e.Repeat(a, 2, 5), e.Repeat(a, 6, 9)), e.Repeat(a, 2, 9));
  EXPECT_EQ(e.Choice(e.Sequence(a, c), e.Sequence(e.Repeat(a, 2, 3), c)),
            e.Sequence(e.Repeat(a, 1, 3), c));
  EXPECT_NE(e.Choice(e.Repeat(a, 2, 5), e.Repeat(a, 7, 9)), e.Repeat(a, 2, 9));
  EXPECT_EQ(e.Choice(Star(a), e.Repeat(a, 7, 9)), Star(a));
  // What begins alike becomes one.
  EXPECT_EQ(e.Choice(e.Text("ac"), e.Text("ad")), e.Sequence(a, Letters("cd")));
}

TEST_F(ExpressionsTest, CharactersAreTheirUtf8) {
  struct Case {
    CodePointRange range;
    std::string_view text;
    bool matches;
  };
  for (const Case& c : std::initializer_list<Case>{
           {{'a', 'z'}, "q", true},
           {{'a', 'z'}, "A", false},
           {{0, 0x10FFFF}, "\U0010FFFF", true},
           {{0, 0x10FFFF}, "\xED\xA0\x80", false},  // A surrogate.
           {{0, 0x10FFFF}, "\xC0\x80", false},      // Too long.
           {{0, 0x10FFFF}, "\xF4\x90\x80\x80", false},
           {{0xD7FF, 0xE000}, "\uD7FF", true},
           {{0x7F, 0x80}, "\x7F", true},
           {{0x7F, 0x80}, "\u0080", true},
           {{0x7F, 0x80}, "\u0081", false},
       }) {
    EXPECT_EQ(Matches(expressions_.Characters({{c.range}}), c.text), c.matches) << c.text;
  }
}

std::string Utf8(uint32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  const auto next = [&](unsigned shift) { return byte(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | (c >> 6)), next(0)};
  if (c < 0x10000) return {byte(0xE0 | (c >> 12)), next(6), next(0)};
  return {byte(0xF0 | (c >> 18)), next(12), next(6), next(0)};
}

TEST_F(ExpressionsTest, RangesOfCharactersHaveTheirEnds) {
  std::mt19937 random(3);
  for (int i = 0; i < 300; ++i) {
    const unsigned shift = random() % 17;
    const uint32_t first = (random() % 0x110000) >> shift;
    const uint32_t last =
        std::min<uint32_t>(first + (random() % 0x20000 >> (random() % 17)), 0x10FFFF);
    std::vector<std::byte> memory(size_t{1} << 16);
    Expressions expressions(memory);
    const Node range = expressions.Characters({{{first, last}}});
    for (const uint32_t c : {first - 1, first, first + 1, (first + last) / 2, last - 1, last,
                             last + 1, static_cast<uint32_t>(random() % 0x110000)}) {
      if (c > 0x10FFFF) continue;
      Node node = range;
      for (const char byte : Utf8(c)) node = expressions.Derive(node, static_cast<uint8_t>(byte));
      const bool is_surrogate = c >= 0xD800 && c <= 0xDFFF;
      EXPECT_EQ(node == kEmpty, c >= first && c <= last && !is_surrogate)
          << first << ' ' << last << ' ' << c;
    }
  }
}

TEST(ExpressionsReferenceTest, DerivativesMatchWhatTheNaiveReferenceMatches) {
  std::mt19937 random(1);
  const std::vector<std::string> texts = AllTexts(4, 4);
  size_t num_finished = 0;
  for (int i = 0; i < 1500; ++i) {
    const NaiveGrammar grammar = RandomGrammar(random, 1 + random() % 3, 3);
    std::vector<std::byte> memory(size_t{1} << 20);
    Expressions expressions(memory);
    const Node start = grammar.Build(expressions);
    if (!expressions.Finish(start)) {
      // Only rules that do not end are refused.
      const std::string& message = expressions.status().error().message();
      EXPECT_THAT(message,
                  testing::AnyOf(HasSubstr("matches no text"), HasSubstr("no text matches")));
      if (message.contains("no text matches")) {
        for (const std::string& text : texts) EXPECT_FALSE(grammar.Matches(text)) << text;
      }
      continue;
    }
    ++num_finished;
    uint32_t shortest = Expressions::kNever;
    for (const std::string& text : texts) {
      Node node = start;
      uint32_t rest = expressions.Rest(start);
      for (const char byte : text) {
        node = expressions.Derive(node, static_cast<uint8_t>(byte));
        rest = expressions.Rest(node);
      }
      ASSERT_TRUE(expressions.status()) << expressions.status().error().message();
      const bool matches = grammar.Matches(text);
      ASSERT_EQ(expressions.MatchesEmpty(node), matches) << "grammar " << i << ": " << text;
      EXPECT_EQ(rest == 0, matches);
      EXPECT_EQ(rest == Expressions::kNever, node == kNothing);
      if (matches) shortest = std::min<uint32_t>(shortest, static_cast<uint32_t>(text.size()));
      // After some letter, the rest is shorter.
      if (node == kNothing || rest == 0) continue;
      uint32_t next = Expressions::kNever;
      for (const uint8_t byte : {'a', 'b', 'c', 'd'}) {
        next = std::min(next, expressions.Rest(expressions.Derive(node, byte)));
      }
      EXPECT_LT(next, rest) << "grammar " << i << ": " << text;
    }
    // What is derivable can be ended, and not by fewer bytes than the shortest text has.
    if (shortest != Expressions::kNever) {
      EXPECT_GE(expressions.Rest(start), shortest);
    }
  }
  EXPECT_GT(num_finished, 500u);
}

TEST(ExpressionsReferenceTest, EmptinessIsExact) {
  std::mt19937 random(2);
  const std::vector<std::string> texts = AllTexts(3, 5);
  size_t num_nothing = 0;
  for (int i = 0; i < 1500; ++i) {
    const NaiveGrammar grammar = RandomGrammar(random, 1, 2);
    std::vector<std::byte> memory(size_t{1} << 20);
    Expressions expressions(memory);
    // The body alone, if it refers to no rule.
    const Node body = expressions.store().b(grammar.Build(expressions));
    if (expressions.HasRule(body)) continue;
    const Result<bool> is_nothing = expressions.IsNothing(body);
    ASSERT_TRUE(is_nothing) << is_nothing.error().message();
    const bool some =
        std::ranges::any_of(texts, [&](const std::string& text) { return grammar.Matches(text); });
    if (some) {
      EXPECT_FALSE(*is_nothing) << i;
    }
    if (*is_nothing) ++num_nothing;
    // What matches only longer texts takes more bytes.
    if (!some && !*is_nothing) {
      EXPECT_GT(expressions.Rest(body), 5u) << i;
    }
  }
  EXPECT_GT(num_nothing, 10u);
}

TEST_F(ExpressionsTest, DisjointExpressions) {
  Expressions& e = expressions_;
  const Node digits = e.Repeat(Letters("0123456789"), 1, kUnbounded);
  EXPECT_TRUE(*e.IsDisjoint(digits, e.Text("true")));
  EXPECT_FALSE(*e.IsDisjoint(digits, e.Text("12")));
  EXPECT_TRUE(*e.IsDisjoint(e.Repeat(digits, 1, 20), e.Not(digits)));
  const Node even = Star(e.Sequence(Letters("ab"), Letters("ab")));
  EXPECT_TRUE(*e.IsDisjoint(even, e.Sequence(Letters("a"), even)));
  EXPECT_FALSE(*e.IsDisjoint(e.Repeat(Letters("ab"), 2, 9), e.Sequence(Letters("a"), even)));
}

TEST_F(ExpressionsTest, NestedBrackets) {
  Expressions& e = expressions_;
  const Node value = e.NewRule();
  e.Define(value, e.Choice(e.Byte('x'), e.Sequence({{e.Byte('('), value, e.Byte(')')}})));
  ASSERT_TRUE(e.Finish(value));
  EXPECT_TRUE(Matches(value, "((x))"));
  EXPECT_FALSE(Matches(value, "((x)"));
  EXPECT_FALSE(Matches(value, "((x)))"));
  EXPECT_EQ(e.Rest(value), 1u);
  EXPECT_EQ(e.Rest(e.Derive(e.Derive(value, '('), '(')), 3u);
  // Each level takes a few nodes.
  const size_t before = e.store().size();
  const std::string deep(1000, '(');
  EXPECT_TRUE(Matches(value, deep + "x" + std::string(1000, ')')));
  EXPECT_LT(e.store().size() - before, 10000u);
}

TEST_F(ExpressionsTest, AmbiguousRulesShareWhatFollows) {
  // Each bracket may be closed in two ways: the options do not become 2^n.
  Expressions& e = expressions_;
  const Node value = e.NewRule();
  e.Define(value, e.Choice({{e.Byte('x'), e.Sequence({{e.Byte('('), value, e.Byte(')')}}),
                             e.Sequence({{e.Byte('('), value, e.Byte(']')}})}}));
  ASSERT_TRUE(e.Finish(value));
  EXPECT_TRUE(Matches(value, std::string(500, '(') + "x" + std::string(500, ']')));
  EXPECT_LT(e.store().size(), 10000u);
}

TEST_F(ExpressionsTest, SharedOptionalPartsTakeNoExponentialTime) {
  Expressions& e = expressions_;
  Node node = e.Text("end");
  for (int i = 0; i < 100; ++i) {
    node = e.Choice(e.Sequence(e.Optional(e.Byte('a')), node),
                    e.Sequence(e.Optional(e.Byte('b')), node));
  }
  EXPECT_TRUE(Matches(node, "abaabbend"));
  EXPECT_FALSE(Matches(node, "abaabben"));
}

TEST_F(ExpressionsTest, LongRepetitionsCostNothing) {
  Expressions& e = expressions_;
  const Node node = e.Sequence(e.Repeat(Letters("ab"), 2, 100000), e.Byte('.'));
  EXPECT_LT(e.store().size(), 20u);
  EXPECT_EQ(e.Rest(node), 3u);
  EXPECT_TRUE(Matches(node, std::string(100, 'a') + "."));
  EXPECT_FALSE(Matches(node, "a."));
  const Node twice = e.Repeat(e.Repeat(e.Byte('a'), 1000, 1000), 1000, 1000);
  EXPECT_EQ(e.Rest(twice), 1000000u);
  EXPECT_EQ(e.Rest(e.Derive(twice, 'a')), 999999u);
  const Node huge = e.Repeat(e.Repeat(e.Byte('a'), 4000000000, kUnbounded), 4000000000, kUnbounded);
  EXPECT_EQ(e.Rest(huge), NodeStore::kMaxRest);
}

TEST_F(ExpressionsTest, CountsInCountsDoNotMultiply) {
  // As (a{0,1000}){0,1000} and ((a|b)+,?){1,50}: after each letter, one iteration or another.
  Expressions& e = expressions_;
  Node node = e.Repeat(e.Repeat(e.Byte('a'), 0, 1000), 0, 1000);
  Node words =
      e.Repeat(e.Sequence(e.Repeat(Letters("ab"), 1, kUnbounded), e.Optional(e.Byte(','))), 1, 50);
  for (int i = 0; i < 300; ++i) {
    node = e.Derive(node, 'a');
    words = e.Derive(words, i % 2 == 0 ? 'a' : 'b');
    e.BeginWork();
  }
  ASSERT_TRUE(e.status());
  EXPECT_TRUE(e.MatchesEmpty(node));
  EXPECT_TRUE(e.MatchesEmpty(words));
  EXPECT_LT(e.store().size(), 10000u);
}

TEST_F(ExpressionsTest, LeftRecursionIsRefused) {
  Expressions& e = expressions_;
  const Node list = e.NewRule();
  const Node other = e.NewRule();
  e.Define(list, e.Choice(e.Byte('x'), e.Sequence(e.Optional(e.Byte(' ')), other)));
  e.Define(other, e.Sequence(list, e.Byte(',')));
  const auto problem = e.FindRuleProblem(list);
  EXPECT_EQ(problem.kind, ProblemKind::kLeftRecursive);
  EXPECT_TRUE(problem.rule == list || problem.rule == other);
  const Status status = e.Finish(list);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(status.error().message(), HasSubstr("may begin with itself"));
}

TEST_F(ExpressionsTest, LeftRecursionBehindARuleThatMatchesEmpty) {
  Expressions& e = expressions_;
  const Node list = e.NewRule();
  const Node space = e.NewRule();
  const Node space_again = e.NewRule();
  e.Define(list, e.Choice(e.Byte('x'), e.Sequence({{space, list, e.Byte(',')}})));
  e.Define(space, space_again);
  e.Define(space_again, Star(e.Byte(' ')));
  EXPECT_EQ(e.FindRuleProblem(list).kind, ProblemKind::kLeftRecursive);
  EXPECT_EQ(e.FindRuleProblem(list).rule, list);
}

TEST_F(ExpressionsTest, RecursionToTheRightIsFine) {
  Expressions& e = expressions_;
  const Node list = e.NewRule();
  e.Define(list, e.Choice(e.Byte('x'), e.Sequence({{e.Byte('x'), e.Byte(','), list}})));
  ASSERT_TRUE(e.Finish(list));
  EXPECT_TRUE(Matches(list, "x,x,x"));
  EXPECT_FALSE(Matches(list, "x,x,"));
}

TEST_F(ExpressionsTest, RulesWithoutABodyOrAnEndAreRefused) {
  Expressions& e = expressions_;
  const Node endless = e.NewRule();
  e.Define(endless, e.Sequence(e.Byte('x'), endless));
  EXPECT_EQ(e.FindRuleProblem(endless).kind, ProblemKind::kNothing);
  const Node undefined = e.NewRule();
  const Node start = e.Choice(e.Byte('y'), e.Sequence(e.Byte('x'), undefined));
  EXPECT_EQ(e.FindRuleProblem(start).kind, ProblemKind::kUndefined);
  EXPECT_EQ(e.FindRuleProblem(start).rule, undefined);
  EXPECT_EQ(e.FindRuleProblem(e.Byte('y')).kind, ProblemKind::kNone);
  EXPECT_THAT(e.Finish(start).error().message(),
              HasSubstr("rule 2 of the constraint is not defined"));
}

TEST_F(ExpressionsTest, WhatNothingMatchesIsRefused) {
  const Node node = expressions_.Both(expressions_.Text("ab"), expressions_.Text("ac"));
  EXPECT_THAT(expressions_.Finish(node).error().message(), HasSubstr("no text matches"));
}

TEST_F(ExpressionsTest, IntersectionsOfRulesAreRefused) {
  const Node rule = expressions_.NewRule();
  expressions_.Define(rule, expressions_.Byte('a'));
  EXPECT_EQ(expressions_.Both(rule, expressions_.Byte('b')), kNothing);
  EXPECT_THAT(expressions_.status().error().message(), HasSubstr("recursive"));
}

TEST_F(ExpressionsTest, TooComplexIntersectionsEndWithAnError) {
  // The texts that have an "a" at each of these distances from their end: some 2^40 states.
  Expressions& e = expressions_;
  const Node any = Letters("ab");
  Node node = Star(any);
  for (uint32_t i = 20; i < 40; ++i) {
    node = e.Both(node, e.Sequence({{Star(any), e.Byte('a'), e.Repeat(any, i, i)}}));
    node = e.Both(node, e.Not(e.Sequence({{Star(any), e.Byte('b'), e.Repeat(any, i, i)}})));
  }
  node = e.Both(node, e.Repeat(e.Sequence(e.Repeat(any, 40, 40), e.Byte('b')), 1, kUnbounded));
  const Result<bool> is_nothing = e.IsNothing(node);
  if (!is_nothing) {
    EXPECT_THAT(is_nothing.error().message(),
                testing::AnyOf(HasSubstr("too complex"), HasSubstr("more memory")));
  }
}

TEST(ExpressionsMemoryTest, AnyMemoryIsEnoughOrAnError) {
  std::mt19937 random(5);
  const std::vector<std::string> texts = AllTexts(3, 3);
  size_t num_succeeded = 0;
  for (int i = 0; i < 20; ++i) {
    const NaiveGrammar grammar = RandomGrammar(random, 2, 3);
    for (size_t bytes = 0; bytes < 200000; bytes += 4 + bytes / 20 / 4 * 4) {
      std::vector<std::byte> memory(bytes);
      Expressions expressions(memory);
      const Node start = grammar.Build(expressions);
      const Status status = expressions.Finish(start);
      if (!status && status.error().code() != ErrorCode::kOutOfMemory) break;
      for (const std::string& text : texts) {
        Node node = start;
        for (const char byte : text) node = expressions.Derive(node, static_cast<uint8_t>(byte));
        if (!expressions.status()) {
          EXPECT_TRUE(node == kNothing || text.empty());
          EXPECT_EQ(expressions.status().error().code(), ErrorCode::kOutOfMemory);
          break;
        }
        EXPECT_EQ(expressions.MatchesEmpty(node), grammar.Matches(text));
      }
      if (expressions.status()) ++num_succeeded;
    }
  }
  EXPECT_GT(num_succeeded, 100u);
}

TEST(ExpressionsMemoryTest, CollectingKeepsWhatIsUsed) {
  std::vector<std::byte> memory(size_t{1} << 20);
  Expressions e(memory);
  const Node value = e.NewRule();
  e.Define(value, e.Choice(e.Byte('x'), e.Sequence({{e.Byte('('), value, e.Byte(')')}})));
  ASSERT_TRUE(e.Finish(value));
  const size_t finished = e.store().size();
  std::vector<Node> roots = {value, value};
  for (int i = 0; i < 50; ++i) roots[0] = e.Derive(roots[0], '(');
  for (int i = 0; i < 20; ++i) roots[1] = e.Derive(roots[1], '(');
  const size_t before = e.store().size();
  e.Collect(roots);
  const size_t collected = e.store().size();
  EXPECT_LT(collected, before);
  EXPECT_LT(collected - finished, 200u);
  EXPECT_EQ(e.Rest(roots[0]), 51u);
  // The same expressions are found again, not made again.
  Node again = value;
  for (int i = 0; i < 20; ++i) again = e.Derive(again, '(');
  EXPECT_EQ(again, roots[1]);
  std::vector<Node> none;
  e.Collect(none);
  EXPECT_EQ(e.store().size(), finished);
}

}  // namespace
}  // namespace cria::grammar
