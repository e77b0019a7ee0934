#include "grammar/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "matcher_fixture.h"

namespace cria::grammar {
namespace {

using testing::HasSubstr;
constexpr size_t kNoLimit = SIZE_MAX;

// The ids that may come next with so many tokens left, by the definition.
std::vector<size_t> NaiveAllowed(NaiveTokens& naive, const std::vector<std::string>& pieces,
                                 size_t remaining) {
  std::vector<uint32_t> rests;
  uint32_t least = Expressions::kNever;
  for (const std::string& piece : pieces) {
    rests.push_back(naive.Rest(piece));
    least = std::min(least, rests.back());
  }
  uint32_t limit = static_cast<uint32_t>(std::min<size_t>(remaining - 1, NodeStore::kMaxRest));
  if (limit < least && naive.Rest() != 0) limit = least;
  std::vector<size_t> ids;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (rests[id] <= limit) ids.push_back(id);
  }
  return ids;
}

std::vector<size_t> Ids(const AllowedTokens& allowed, size_t vocab_size) {
  std::vector<size_t> ids;
  for (size_t id = 0; id < vocab_size; ++id) {
    if (HasToken(allowed, id)) ids.push_back(id);
  }
  return ids;
}

void ExpectSame(const AllowedTokens& allowed, NaiveTokens& naive, const TestMatcher& test,
                size_t remaining) {
  const std::vector<size_t> expected = NaiveAllowed(naive, test.pieces, remaining);
  EXPECT_EQ(Ids(allowed, test.pieces.size()), expected);
  EXPECT_EQ(allowed.count, expected.size());
  EXPECT_EQ(allowed.may_end, naive.Rest() == 0);
  EXPECT_EQ(allowed.single,
            expected.size() == 1 && !allowed.may_end ? static_cast<int32_t>(expected[0]) : -1);
}

TEST(MatcherTest, MasksAreWhatEachTokenByItselfSays) {
  std::mt19937 random(11);
  size_t num_compared = 0;
  for (int i = 0; i < 150; ++i) {
    TestMatcher test(RandomVocabulary(random, 4));
    const NaiveGrammar grammar = RandomGrammar(random, 1 + random() % 3, 3);
    NaiveTokens naive(grammar);
    const Status compiled = test.matcher->Compile(NaiveSource(grammar).source(), ReadNaiveGrammar);
    ASSERT_EQ(compiled.has_value(), naive.valid());
    if (!compiled) continue;
    for (int step = 0; step < 10; ++step) {
      const size_t remaining = random() % 2 == 0 ? kNoLimit : 1 + random() % 6;
      const auto allowed = test.matcher->Allowed(remaining);
      ASSERT_TRUE(allowed) << allowed.error().message() << ": " << grammar.ToString();
      ExpectSame(*allowed, naive, test, remaining);
      ++num_compared;
      const auto token = ChooseToken(*allowed, test.pieces.size(), random);
      if (!token) break;
      ASSERT_TRUE(test.matcher->Accept(*token));
      test.matcher->Commit();
      naive.Append(test.pieces[static_cast<size_t>(*token)]);
      EXPECT_EQ(test.matcher->IsComplete(), naive.Rest() == 0);
    }
  }
  EXPECT_GT(num_compared, 300u);
}

TEST(MatcherTest, TextsEndWithinTheirTokens) {
  std::mt19937 random(12);
  size_t num_texts = 0;
  for (int i = 0; i < 200; ++i) {
    TestMatcher test(RandomVocabulary(random, 4));
    const NaiveGrammar grammar = RandomGrammar(random, 1 + random() % 3, 3);
    NaiveTokens naive(grammar);
    if (!naive.valid()) continue;
    ASSERT_TRUE(test.matcher->Compile(NaiveSource(grammar).source(), ReadNaiveGrammar));
    for (int repetition = 0; repetition < 3; ++repetition) {
      test.matcher->Restart();
      ++num_texts;
      for (size_t remaining = naive.Rest() + random() % 8; remaining > 0; --remaining) {
        const auto allowed = test.matcher->Allowed(remaining);
        ASSERT_TRUE(allowed) << allowed.error().message() << ": " << grammar.ToString();
        const auto token = ChooseToken(*allowed, test.pieces.size(), random);
        if (!token || (allowed->may_end && random() % 8 == 0)) break;
        ASSERT_TRUE(test.matcher->Accept(*token));
        test.matcher->Commit();
      }
      EXPECT_TRUE(test.matcher->IsComplete()) << i;
    }
  }
  EXPECT_GT(num_texts, 200u);
}

TEST(MatcherTest, RewindingIsAsIfTheTokensNeverCame) {
  std::mt19937 random(17);
  for (int i = 0; i < 40; ++i) {
    TestMatcher test(RandomVocabulary(random, 4));
    const NaiveGrammar grammar = RandomGrammar(random, 1 + random() % 3, 3);
    if (!test.matcher->Compile(NaiveSource(grammar).source(), ReadNaiveGrammar)) continue;
    std::vector<int32_t> tokens;
    size_t num_committed = 0;
    for (int step = 0; step < 25; ++step) {
      const unsigned what = random() % 8;
      if (what == 0) {
        test.matcher->Commit();
        num_committed = tokens.size();
      } else if (what < 3) {
        const size_t count = random() % (tokens.size() - num_committed + 1);
        test.matcher->Rewind(count);
        tokens.resize(tokens.size() - count);
      } else if (tokens.size() - num_committed < Matcher::kMaxAhead) {
        const auto allowed = test.matcher->Allowed(kNoLimit);
        ASSERT_TRUE(allowed);
        const auto token = ChooseToken(*allowed, test.pieces.size(), random);
        if (!token) continue;
        ASSERT_TRUE(test.matcher->Accept(*token));
        tokens.push_back(*token);
      }
    }
    NaiveTokens naive(grammar);
    for (const int32_t token : tokens) naive.Append(test.pieces[static_cast<size_t>(token)]);
    ExpectSame(*test.matcher->Allowed(kNoLimit), naive, test, kNoLimit);
  }
}

TEST(MatcherTest, AnyMemoryIsEnoughOrAnError) {
  std::mt19937 random(14);
  size_t num_texts = 0;
  size_t num_errors = 0;
  for (int i = 0; i < 15; ++i) {
    std::vector<std::string> vocabulary = RandomVocabulary(random, 4);
    vocabulary.resize(30);
    const NaiveGrammar grammar = RandomGrammar(random, 1 + random() % 3, 3);
    if (!NaiveTokens(grammar).valid()) continue;
    for (size_t bytes = 0; bytes < 100000; bytes += 8 + bytes / 8 / 8 * 8) {
      TestMatcher test(vocabulary, bytes);
      Status status = test.matcher->Compile(NaiveSource(grammar).source(), ReadNaiveGrammar);
      NaiveTokens naive(grammar);
      for (int step = 0; step < 4 && status; ++step) {
        const auto allowed = test.matcher->Allowed(kNoLimit);
        if (!allowed) {
          status = std::unexpected(allowed.error());
          break;
        }
        ExpectSame(*allowed, naive, test, kNoLimit);
        const auto token = ChooseToken(*allowed, vocabulary.size(), random);
        if (!token) break;
        status = test.matcher->Accept(*token);
        if (random() % 2 == 0) test.matcher->Commit();
        if (status) naive.Append(vocabulary[static_cast<size_t>(*token)]);
      }
      if (status) {
        ++num_texts;
      } else {
        ++num_errors;
        EXPECT_EQ(status.error().code(), ErrorCode::kOutOfMemory) << status.error().message();
      }
    }
  }
  EXPECT_GT(num_texts, 100u);
  EXPECT_GT(num_errors, 100u);
}

// S = "x" | "(" S ")"
Result<Node> ReadBrackets(Expressions& expressions, const ConstraintSource&) {
  const Node value = expressions.NewRule();
  expressions.Define(
      value, expressions.Choice(
                 expressions.Byte('x'),
                 expressions.Sequence({{expressions.Byte('('), value, expressions.Byte(')')}})));
  return value;
}

TEST(MatcherTest, BracketsInBracketsWithinLittleMemory) {
  // Far more states than there is memory for.
  TestMatcher test({"(", ")", "x", "((", "))", "x)", "(x"}, 400000);
  ASSERT_TRUE(test.matcher->Compile({}, ReadBrackets));
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(test.matcher->Allowed(kNoLimit));
    const Status status = test.matcher->Accept(3);
    ASSERT_TRUE(status) << status.error().message();
    test.matcher->Commit();
  }
  ASSERT_TRUE(test.matcher->Accept(5));
  test.matcher->Commit();
  for (int i = 0; i < 1999; ++i) {
    EXPECT_FALSE(test.matcher->IsComplete());
    const Status status = test.matcher->Accept(1);
    ASSERT_TRUE(status) << status.error().message();
    test.matcher->Commit();
  }
  EXPECT_TRUE(test.matcher->IsComplete());
  const auto allowed = test.matcher->Allowed(kNoLimit);
  ASSERT_TRUE(allowed) << allowed.error().message();
  EXPECT_EQ(allowed->count, 0u);
  EXPECT_TRUE(allowed->may_end);
}

TEST(MatcherTest, TheOnlyTokenIsSaid) {
  TestMatcher test({"(", ")", "x", ""});
  ASSERT_TRUE(test.matcher->Compile({}, ReadBrackets));
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->single, -1);
  ASSERT_TRUE(test.matcher->Accept(0));
  ASSERT_TRUE(test.matcher->Accept(2));
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->single, 1);
  EXPECT_FALSE(test.matcher->IsComplete());
  ASSERT_TRUE(test.matcher->Accept(1));
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->single, -1);
  EXPECT_TRUE(test.matcher->IsComplete());
}

Result<Node> ReadAs(Expressions& expressions, const ConstraintSource&) {
  return expressions.Repeat(expressions.Byte('a'), 0, kUnbounded);
}

TEST(MatcherTest, LongTokens) {
  const std::string longest(TokenTable::kMaxPieceBytes, 'a');
  TestMatcher test({longest + 'a', longest, "a", longest.substr(1) + 'b'});
  ASSERT_TRUE(test.matcher->Compile({}, ReadAs));
  for (size_t i = 0; i < 2 * Matcher::kMaxAhead; ++i) {
    EXPECT_THAT(Ids(*test.matcher->Allowed(kNoLimit), 4), testing::ElementsAre(1, 2));
    if (i % Matcher::kMaxAhead == 0) test.matcher->Commit();
    ASSERT_TRUE(test.matcher->Accept(1));
  }
  EXPECT_FALSE(test.matcher->Accept(0));
}

// "[^"\]*", with any end of a state in it.
Result<Node> ReadStrings(Expressions& expressions, const ConstraintSource&) {
  ByteSet set;
  set.AddRange(' ', '~');
  ByteSet quote;
  quote.Add('"');
  quote.Add('\\');
  const Node inside = expressions.Repeat(expressions.Bytes(set & ~quote), 0, kUnbounded);
  return expressions.Sequence({{expressions.Byte('"'), inside, expressions.Text("\"!")}});
}

TEST(MatcherTest, PlainTokensInStrings) {
  const std::vector<std::string> pieces = {"\"", "a b", "~",  "a\"", "\"!", "a\n",
                                           "\\", "",    " 7", "\"?", "!"};
  TestMatcher test(pieces);
  ASSERT_TRUE(test.matcher->Compile({}, ReadStrings));
  EXPECT_THAT(Ids(*test.matcher->Allowed(kNoLimit), pieces.size()), testing::ElementsAre(0, 4, 9));
  ASSERT_TRUE(test.matcher->Accept(0));
  const auto allowed = test.matcher->Allowed(kNoLimit);
  EXPECT_THAT(Ids(*allowed, pieces.size()), testing::ElementsAre(0, 1, 2, 3, 4, 8, 10));
  EXPECT_EQ(allowed->count, 7u);
  // With two tokens, the string may not get longer; with three, by one.
  EXPECT_THAT(Ids(*test.matcher->Allowed(2), pieces.size()), testing::ElementsAre(0, 3, 4));
  EXPECT_EQ(test.matcher->Allowed(2)->count, 3u);
  EXPECT_EQ(test.matcher->Allowed(3)->count, 7u);
  EXPECT_EQ(test.matcher->Allowed(1)->single, 4);
}

// (ab|c){10,2000}(d|ab{0,700}d)
Result<Node> ReadCounted(Expressions& e, const ConstraintSource&) {
  const Node end = e.Sequence({{e.Byte('a'), e.Repeat(e.Byte('b'), 0, 700), e.Byte('d')}});
  return e.Sequence(e.Repeat(e.Choice(e.Text("ab"), e.Byte('c')), 10, 2000),
                    e.Choice(e.Byte('d'), end));
}

TEST(MatcherTest, LongCountsAreExact) {
  std::mt19937 random(15);
  std::string many;
  while (many.size() < TokenTable::kMaxPieceBytes) many += random() % 3 == 0 ? "ab" : "c";
  TestMatcher test({"a", "b", "c", "d", "ab", "cab", "ba", "bb", std::string(250, 'c'),
                    std::string(200, 'b'), many.substr(0, TokenTable::kMaxPieceBytes), "cd"});
  std::vector<uint64_t> memory(size_t{1} << 19);
  size_t num_near_end = 0;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(test.matcher->Compile({}, ReadCounted));
    Expressions expressions(std::as_writable_bytes(std::span(memory)));
    Node node = *ReadCounted(expressions, {});
    ASSERT_TRUE(expressions.Finish(node));
    for (int step = 0; step < 4000; ++step) {
      const auto allowed = test.matcher->Allowed(kNoLimit);
      ASSERT_TRUE(allowed) << allowed.error().message();
      expressions.BeginWork();
      for (size_t id = 0; id < test.pieces.size(); ++id) {
        Node after = node;
        for (const char byte : test.pieces[id]) {
          after = expressions.Derive(after, static_cast<uint8_t>(byte));
        }
        ASSERT_EQ(HasToken(*allowed, id), after != Expressions::kNothing) << id << ' ' << step;
      }
      if (HasToken(*allowed, 2) && !HasToken(*allowed, 8)) ++num_near_end;
      auto token = ChooseToken(*allowed, test.pieces.size(), random);
      // Far enough.
      if (HasToken(*allowed, 8) && random() % 8 != 0) token = 8;
      if (!token) break;
      ASSERT_TRUE(test.matcher->Accept(*token));
      test.matcher->Commit();
      for (const char byte : test.pieces[static_cast<size_t>(*token)]) {
        node = expressions.Derive(node, static_cast<uint8_t>(byte));
      }
      ASSERT_TRUE(expressions.status());
    }
  }
  EXPECT_GT(num_near_end, 0u);
}

// Texts of some characters each, and what ends a string, escapes, or is only a part of a character.
std::vector<std::string> TextVocabulary(std::mt19937& random) {
  constexpr std::array kParts = {"a", "Z ", "é", "ñ", "€", "\xED\x9F\xBF", "\xF0\x9F\xA6\x99", "~"};
  std::vector<std::string> pieces = {"\"",   "\"}",      "a\"",  "é\"",  "\\n",   "\\u00",
                                     "e9",   "\n",       "\xC3", "\xA9", "x\xE2", "\x82\xAC",
                                     "\x7F", "\xED\xA0", "",     "}"};
  for (int i = 0; i < 40; ++i) {
    std::string piece;
    for (size_t left = 1 + random() % (i % 8 == 0 ? 40 : 6); left > 0; --left) {
      piece += kParts[random() % (i % 2 == 0 ? kParts.size() : 2)];
    }
    pieces.push_back(piece);
  }
  return pieces;
}

TEST(MatcherTest, StringsWithAnyNumberOfCharacters) {
  constexpr auto kSchemas = std::to_array<std::string_view>({
      R"({"type": "string"})",
      R"({"type": "string", "minLength": 5})",
      R"({"type": "string", "minLength": 30, "maxLength": 60})",
      R"({"type": "string", "maxLength": 3})",
      R"({"type": "string", "maxLength": 17})",
      R"({"type": "string", "minLength": 7, "maxLength": 7})",
      R"({"type": "string", "minLength": 300, "maxLength": 310})",
      R"({"type": "string", "pattern": "^[^a]*$"})",
      R"({"type": "string", "pattern": "^[a-zA-Z ~]*$"})",
      R"({"type": "string", "pattern": "^..(a|[^a]{3})*$"})",
      R"({"type": "string", "pattern": "^(.{4}|[^€].)*$"})",
      R"({"type": "string", "pattern": "^([a-z]{2,5} ?){1,3}$"})",
      R"({"type": "string", "pattern": "^(\\p{L}{1,4}[~ ]){2,9}$"})",
      R"({"type": "string", "pattern": "^[\\u0000-\\ud7ff]*$"})",
  });
  std::mt19937 random(19);
  std::vector<uint64_t> memory(size_t{1} << 19);
  size_t num_compared = 0;
  for (const std::string_view schema : kSchemas) {
    TestMatcher test(TextVocabulary(random));
    const ConstraintSource source = {.kind = ConstraintKind::kJsonSchema, .text = schema};
    const Status compiled = test.matcher->Compile(source);
    ASSERT_TRUE(compiled) << compiled.error().message();
    for (int text = 0; text < 8; ++text) {
      test.matcher->Restart();
      Expressions expressions(std::as_writable_bytes(std::span(memory)));
      Node node = *ReadConstraint(expressions, source);
      ASSERT_TRUE(expressions.Finish(node));
      for (int step = 0; step < 30; ++step) {
        const size_t remaining = random() % 2 == 0 ? kNoLimit : 1 + random() % 40;
        const auto allowed = test.matcher->Allowed(remaining);
        expressions.BeginWork();
        std::vector<uint32_t> rests;
        for (const std::string& piece : test.pieces) {
          Node after = piece.empty() ? Expressions::kNothing : node;
          for (const char byte : piece) {
            after = expressions.Derive(after, static_cast<uint8_t>(byte));
          }
          rests.push_back(after == Expressions::kNothing ? Expressions::kNever
                                                         : expressions.Rest(after));
        }
        const bool may_end = expressions.Rest(node) == 0;
        if (!allowed) {
          // A character was begun that the vocabulary cannot end.
          EXPECT_FALSE(may_end);
          EXPECT_EQ(std::ranges::min(rests), Expressions::kNever) << allowed.error().message();
          break;
        }
        ++num_compared;
        auto limit = static_cast<uint32_t>(std::min<size_t>(remaining - 1, NodeStore::kMaxRest));
        if (!may_end) limit = std::max(limit, std::ranges::min(rests));
        size_t count = 0;
        for (size_t id = 0; id < rests.size(); ++id) {
          EXPECT_EQ(HasToken(*allowed, id), rests[id] <= limit) << test.pieces[id] << schema;
          count += rests[id] <= limit ? 1 : 0;
        }
        EXPECT_EQ(allowed->count, count);
        EXPECT_EQ(allowed->may_end, may_end);
        const auto token = ChooseToken(*allowed, test.pieces.size(), random);
        if (!token) break;
        ASSERT_TRUE(test.matcher->Accept(*token));
        test.matcher->Commit();
        for (const char byte : test.pieces[static_cast<size_t>(*token)]) {
          node = expressions.Derive(node, static_cast<uint8_t>(byte));
        }
        ASSERT_TRUE(expressions.status());
      }
    }
  }
  EXPECT_GT(num_compared, 500u);
}

TEST(MatcherTest, WrongCallsAreErrors) {
  TestMatcher test({"(", ")", "x", ""});
  EXPECT_FALSE(test.matcher->Allowed(1));
  EXPECT_FALSE(test.matcher->Accept(0));
  EXPECT_FALSE(test.matcher->IsComplete());
  ASSERT_TRUE(test.matcher->Compile({}, ReadBrackets));
  for (const int32_t token : {1, 3, 4, -1}) {
    const Status status = test.matcher->Accept(token);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message(), HasSubstr("does not allow token"));
  }
  for (size_t i = 0; i < Matcher::kMaxAhead; ++i) ASSERT_TRUE(test.matcher->Accept(0));
  EXPECT_FALSE(test.matcher->Accept(0));
  test.matcher->Commit();
  EXPECT_TRUE(test.matcher->Accept(0));
  test.matcher->Restart();
  EXPECT_TRUE(test.matcher->Accept(2));
  EXPECT_TRUE(test.matcher->IsComplete());
}

TEST(MatcherTest, AVocabularyThatCannotGoOnIsAnError) {
  TestMatcher test({"(", "()", "x"});
  ASSERT_TRUE(test.matcher->Compile({}, ReadBrackets));
  ASSERT_TRUE(test.matcher->Accept(0));
  ASSERT_TRUE(test.matcher->Accept(2));
  const auto allowed = test.matcher->Allowed(kNoLimit);
  ASSERT_FALSE(allowed);
  EXPECT_THAT(allowed.error().message(), HasSubstr("no token"));
}

TEST(MatcherTest, AnyTextMayFollowASchemaAtTheBeginning) {
  TestMatcher test({"[1", "]", "2", "]x", "y"});
  ASSERT_TRUE(test.matcher->Compile(
      {ConstraintKind::kJsonSchemaAtBegin, R"({"type": "array", "items": {"const": 1}})"}));
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->single, 0);
  ASSERT_TRUE(test.matcher->Accept(0));
  EXPECT_FALSE(test.matcher->IsComplete());
  const AllowedTokens inside = *test.matcher->Allowed(kNoLimit);
  EXPECT_TRUE(HasToken(inside, 1) && HasToken(inside, 3));
  EXPECT_FALSE(HasToken(inside, 2) || HasToken(inside, 4));
  ASSERT_TRUE(test.matcher->Accept(3));
  EXPECT_TRUE(test.matcher->IsComplete());
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->count, 5u);
}

size_t num_reads = 0;

Result<Node> CountReads(Expressions& expressions, const ConstraintSource& source) {
  ++num_reads;
  return expressions.Text(source.text);
}

TEST(MatcherTest, TheSameSourceIsReadOnce) {
  TestMatcher test({"a", "b"});
  num_reads = 0;
  std::string text = "ab";
  ASSERT_TRUE(test.matcher->Compile({ConstraintKind::kRegex, text}, CountReads));
  ASSERT_TRUE(test.matcher->Accept(0));
  text = "ab ";  // It may be elsewhere.
  const std::string_view same = std::string_view(text).substr(0, 2);
  ASSERT_TRUE(test.matcher->Compile({ConstraintKind::kRegex, same}, CountReads));
  EXPECT_EQ(num_reads, 1u);
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->single, 0);
  ASSERT_TRUE(test.matcher->Compile({ConstraintKind::kRegex, "ba"}, CountReads));
  EXPECT_EQ(num_reads, 2u);
  EXPECT_EQ(test.matcher->Allowed(kNoLimit)->single, 1);
  ASSERT_TRUE(test.matcher->Compile({ConstraintKind::kGbnf, "ba"}, CountReads));
  EXPECT_EQ(num_reads, 3u);
}

Result<Node> RefuseToRead(Expressions&, const ConstraintSource&) {
  return Fail(ErrorCode::kUsage, "refused");
}

TEST(MatcherTest, AfterAnErrorThereIsNoConstraint) {
  TestMatcher test({"(", ")", "x"});
  ASSERT_TRUE(test.matcher->Compile({}, ReadBrackets));
  EXPECT_FALSE(test.matcher->Compile({}, RefuseToRead));
  EXPECT_FALSE(test.matcher->Allowed(kNoLimit));
  EXPECT_TRUE(test.matcher->Compile({}, ReadBrackets));
  EXPECT_TRUE(test.matcher->Allowed(kNoLimit));
  const std::string large(Matcher::MemoryBytes(3), 'a');
  const Status status = test.matcher->Compile({ConstraintKind::kRegex, large}, CountReads);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace cria::grammar
