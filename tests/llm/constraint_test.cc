#include "llm/constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/constraint_fixture.h"

namespace cria {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

constexpr size_t kNoLimit = SIZE_MAX;

// The tokens after which the text can still become one of `texts`.
Tokens NaivelyAllowed(const TestVocabulary& vocabulary, const std::vector<std::string>& texts,
                      std::string_view so_far) {
  Tokens ids;
  for (int32_t id = 0; id < static_cast<int32_t>(kVocabSize); ++id) {
    const std::string longer = std::string(so_far) + vocabulary.Text(id);
    const bool is_beginning = std::ranges::any_of(
        texts, [&](const std::string& text) { return text.starts_with(longer); });
    if (vocabulary.IsText(id) && is_beginning) ids.push_back(id);
  }
  return ids;
}

class ConstraintTest : public testing::Test {
 protected:
  Constraint::Next Find(Constraint& constraint, std::span<const int32_t> stops = {},
                        size_t max_tokens = kNoLimit) {
    return Unwrap(constraint.FindNext(stops, max_tokens));
  }

  void Accept(Constraint& constraint, std::initializer_list<std::string_view> pieces) {
    for (const std::string_view piece : pieces) {
      Unwrap(constraint.Accept(constraints_.vocabulary().Id(piece)));
    }
  }

  TestConstraints constraints_;
};

TEST_F(ConstraintTest, AllowsWhatCanStillMatch) {
  const std::vector<std::string> texts = {"abc", "abab", "name: 00", "\xE2\x82\xAC", "<x>a", ""};
  const auto constraint = constraints_.OfRegex("abc|abab|name: 00|\u20AC|<x>a|");
  // Depth-first through all texts, token by token.
  const TestVocabulary& vocabulary = constraints_.vocabulary();
  size_t num_visited = 0;
  const auto visit = [&](const auto& self, const Tokens& path) -> void {
    ++num_visited;
    constraint->Restart();
    for (const int32_t id : path) Unwrap(constraint->Accept(id));
    const std::string text = vocabulary.Text(path);
    const Constraint::Next next = Find(*constraint);
    const Tokens expected = NaivelyAllowed(vocabulary, texts, text);
    const bool is_complete = std::ranges::contains(texts, text);
    EXPECT_EQ(IdsOf(next.mask), expected) << text;
    EXPECT_EQ(next.mask.may_end, is_complete) << text;
    EXPECT_EQ(next.is_over, is_complete && expected.empty()) << text;
    EXPECT_EQ(next.forced, expected.size() == 1 && !is_complete ? expected.front() : -1) << text;
    for (const int32_t id : expected) {
      Tokens longer = path;
      longer.push_back(id);
      self(self, longer);
    }
  };
  visit(visit, {});
  EXPECT_GT(num_visited, 20u);
}

TEST_F(ConstraintTest, TokensThatAreNotTextAreNeverAllowed) {
  const auto constraint = constraints_.OfRegex("[^]*");
  const Tokens allowed = IdsOf(Find(*constraint).mask);
  for (const int32_t id : {kEndToken, kControlToken, kUnusedToken}) {
    EXPECT_FALSE(std::ranges::contains(allowed, id)) << id;
  }
  EXPECT_TRUE(std::ranges::contains(allowed, constraints_.vocabulary().Id("<x>")));
}

TEST_F(ConstraintTest, StopTokensAreAllowedExactlyWhereTheTextMayEnd) {
  const int32_t c = constraints_.vocabulary().Id("c");
  const Tokens stops = {kEndToken, c};
  const auto constraint = constraints_.OfRegex("ab?c?");
  Constraint::Next next = Find(*constraint, stops);
  EXPECT_THAT(IdsOf(next.mask), UnorderedElementsAreArray(Tokens{
                                    constraints_.vocabulary().Id("a"),
                                    constraints_.vocabulary().Id("ab"),
                                    constraints_.vocabulary().Id("abc"),
                                }));
  Accept(*constraint, {"a"});
  next = Find(*constraint, stops);
  EXPECT_TRUE(std::ranges::contains(IdsOf(next.mask), kEndToken));
  EXPECT_TRUE(std::ranges::contains(IdsOf(next.mask), c));
  // A stop token that is text ends the text: it is not forced, although nothing else is possible.
  const auto other = constraints_.OfRegex("ac");
  Accept(*other, {"a"});
  next = Find(*other, stops);
  EXPECT_EQ(next.forced, -1);
  EXPECT_THAT(IdsOf(next.mask), ElementsAre());
}

TEST_F(ConstraintTest, DraftsAreFollowedAsFarAsTheyMatch) {
  const TestVocabulary& vocabulary = constraints_.vocabulary();
  const auto constraint = constraints_.OfRegex("(ab)*name");
  const auto ids = [&](std::initializer_list<std::string_view> pieces) {
    Tokens tokens;
    for (const std::string_view piece : pieces) tokens.push_back(vocabulary.Id(piece));
    return tokens;
  };
  const Tokens before = IdsOf(Find(*constraint).mask);
  EXPECT_EQ(constraint->CountAllowed(ids({"ab", "a", "b", "name"}), kNoLimit), 4u);
  EXPECT_EQ(constraint->CountAllowed(ids({"ab", "a", "a", "name"}), kNoLimit), 2u);
  EXPECT_EQ(constraint->CountAllowed(ids({"b"}), kNoLimit), 0u);
  EXPECT_EQ(constraint->CountAllowed(Tokens{kEndToken}, kNoLimit), 0u);
  EXPECT_EQ(constraint->CountAllowed({}, kNoLimit), 0u);
  // Nothing of them stays.
  EXPECT_EQ(IdsOf(Find(*constraint).mask), before);
}

TEST_F(ConstraintTest, WhatWasTriedCanBeTakenBack) {
  const auto constraint = constraints_.OfRegex("a{3}b{3}");
  Accept(*constraint, {"a"});
  const Tokens before = IdsOf(Find(*constraint).mask);
  const int32_t a = constraints_.vocabulary().Id("a");
  Unwrap(constraint->Try(a));
  Unwrap(constraint->Try(a));
  EXPECT_EQ(Find(*constraint).forced, constraints_.vocabulary().Id("b"));
  constraint->Rewind(2);
  EXPECT_EQ(IdsOf(Find(*constraint).mask), before);
  constraint->Restart();
  Accept(*constraint, {"a"});
  EXPECT_EQ(IdsOf(Find(*constraint).mask), before);
}

TEST_F(ConstraintTest, ATextThatTheVocabularyCannotWriteIsAnError) {
  const auto constraint = constraints_.OfRegex("az");
  Accept(*constraint, {"a"});
  const auto next = constraint->FindNext({}, kNoLimit);
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code(), ErrorCode::kUnsupported);
  EXPECT_THAT(next.error().message(), HasSubstr("vocabulary"));
}

TEST_F(ConstraintTest, TheLimitLeadsToTheEnd) {
  const auto constraint = constraints_.OfRegex("\\{a*\\}");
  Accept(*constraint, {"{"});
  EXPECT_EQ(Find(*constraint, {}, 1).forced, constraints_.vocabulary().Id("}"));
  EXPECT_EQ(Find(*constraint, {}, 2).forced, -1);
  EXPECT_FALSE(constraint->IsComplete());
  Accept(*constraint, {"}"});
  EXPECT_TRUE(constraint->IsComplete());
}

TEST_F(ConstraintTest, ThereAreAtMostAsManyAsWerePlanned) {
  auto first = Unwrap(constraints_.TryNew());
  const auto second = Unwrap(constraints_.TryNew());
  const auto third = constraints_.TryNew();
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(third.error().remedy().kind, RemedyKind::kMoreConstraints);
  first.reset();
  EXPECT_TRUE(constraints_.TryNew());
}

TEST_F(ConstraintTest, AnErrorCanBeFollowedByAnotherConstraint) {
  const auto constraint = Unwrap(constraints_.TryNew());
  EXPECT_FALSE(constraint->Set({grammar::ConstraintKind::kRegex, "(a"}));
  EXPECT_FALSE(constraint->Set({grammar::ConstraintKind::kJsonSchema, "{"}));
  Unwrap(constraint->Set({grammar::ConstraintKind::kJson, ""}));
  EXPECT_GT(IdsOf(Find(*constraint).mask).size(), 10u);
  Unwrap(constraint->Set({grammar::ConstraintKind::kGbnf, "root ::= \"ab\" | \"a\""}));
  EXPECT_EQ(IdsOf(Find(*constraint).mask).size(), 2u);
}

}  // namespace
}  // namespace cria
