// Reasoning that has as many tokens as it may have is ended, and the answer follows.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/answers/scripted_answer.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

using testing::StartsWith;

constexpr const char* kThought = "I think of one thing, and of another, and of a third one";

TEST(ReasoningBudgetTest, TheAnswerFollowsWhereTheReasoningIsEnded) {
  std::string kept;
  for (const size_t budget : {1u, 2u, 5u}) {
    ScriptedAnswer answer(kThought);
    answer.options().reasoning_budget = budget;
    // The model itself ends its turn where the text is not the script's.
    const AnswerEnd end = answer.Run(nullptr, nullptr, /*begins_in_reasoning=*/true);
    EXPECT_EQ(end.reason, FinishReason::kStop);
    const std::string reasoning = answer.listener().reasoning;
    EXPECT_THAT(kThought, StartsWith(reasoning));
    EXPECT_GT(reasoning.size(), kept.size());
    EXPECT_EQ(answer.ContextText(), reasoning + "</think>\n\n");
    kept = reasoning;

    ScriptedAnswer going_on(reasoning + "</think>\n\nSo it is.");
    going_on.options().reasoning_budget = budget;
    EXPECT_EQ(going_on.Run(nullptr, nullptr, /*begins_in_reasoning=*/true).reason,
              FinishReason::kStop);
    EXPECT_EQ(going_on.listener().reasoning, reasoning);
    EXPECT_EQ(going_on.listener().answer, "So it is.");
  }
}

TEST(ReasoningBudgetTest, ZeroIsNoReasoning) {
  ScriptedAnswer answer("</think>\n\nyes");
  answer.options().reasoning_budget = 0;
  answer.Run(nullptr, nullptr, /*begins_in_reasoning=*/true);
  EXPECT_EQ(answer.listener().reasoning, "");
  EXPECT_EQ(answer.listener().answer, "yes");
  // Also if the model opens it.
  ScriptedAnswer opens("<think></think>\n\nyes");
  opens.options().reasoning_budget = 0;
  opens.Run(nullptr, nullptr, false, /*may_reason=*/true);
  EXPECT_EQ(opens.listener().reasoning, "");
  EXPECT_EQ(opens.listener().answer, "yes");
}

TEST(ReasoningBudgetTest, ReasoningWithinItDoesNotChange) {
  for (const bool begins : {false, true}) {
    ScriptedAnswer answer(std::string(begins ? "" : "<think>") + "why</think>ab cd");
    answer.options().reasoning_budget = 100;
    answer.Run(nullptr, nullptr, begins, true);
    EXPECT_EQ(answer.listener().reasoning, "why");
    EXPECT_EQ(answer.listener().answer, "ab cd");
  }
  // Answers have no part in it.
  ScriptedAnswer plain(kThought);
  plain.options().reasoning_budget = 2;
  plain.Run(nullptr, nullptr, false, true);
  EXPECT_EQ(plain.listener().answer, kThought);
}

TEST(ReasoningBudgetTest, SchemasAndCallsFollow) {
  ScriptedAnswer shaped(kThought);
  shaped.options().reasoning_budget = 3;
  shaped.options().shape = {
      .kind = AnswerShape::Kind::kJsonSchema, .text = R"({"const": 7})", .field = "json_schema"};
  shaped.Run(nullptr, nullptr, /*begins_in_reasoning=*/true);
  EXPECT_THAT(kThought, StartsWith(shaped.listener().reasoning));
  EXPECT_EQ(shaped.listener().answer, "7");

  const ToolUse tools = TestTools("required");
  ScriptedAnswer called(kThought);
  called.options().reasoning_budget = 3;
  called.options().max_tokens = 300;
  called.Run(&tools, MakeHermesFormat().get(), /*begins_in_reasoning=*/true);
  EXPECT_THAT(kThought, StartsWith(called.listener().reasoning));
  EXPECT_FALSE(called.listener().calls.empty());
}

}  // namespace
}  // namespace cria::server
