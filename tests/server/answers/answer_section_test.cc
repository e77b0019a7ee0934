// Sections of an answer, without a model.

#include "server/answers/answer_section.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/answers/call_section.h"
#include "server/answers/free_section.h"
#include "server/answers/scripted_answer.h"
#include "server/answers/shaped_section.h"
#include "server/requests/test_tools.h"

namespace cria::server {
namespace {

class AnswerSectionTest : public testing::Test {
 protected:
  // Without a tokenizer's help, because no constraint is asked.
  AnswerSetup MakeSetup(const ToolUse* tools = nullptr, ReasoningTags tags = {}) {
    return {.tokenizer = *tokenizer_,
            .session = *session_,
            .options = options_,
            .tools = tools,
            .tags = tags};
  }

  AnswerCalls Calls(const AnswerForm& form) {
    return AnswerCalls(form, listener_, [this] { return is_full_; });
  }

  const TinyModelFile file_{support::SpecGqa()};
  const ModelFile model_file_ = file_.Open();
  const std::optional<Tokenizer> tokenizer_ = Unwrap(Tokenizer::Create(model_file_.vocabulary()));
  ScriptedModel model_{300, 64, 8, [](std::span<const int32_t>) { return 0; }};
  Scheduler scheduler_{model_};
  const std::unique_ptr<Session> session_ = std::make_unique<Session>(scheduler_);
  AnswerOptions options_;
  RecordingListener listener_;
  bool is_full_ = false;
};

TEST_F(AnswerSectionTest, AFreeOnePassesOnItsText) {
  const AnswerSetup setup = MakeSetup(nullptr, kReasoningTags[0]);
  AnswerForm form(setup);
  AnswerCalls calls = Calls(form);
  FreeSection section(setup, form, calls, listener_);
  section.Begin(0);
  section.Take("<think>why</th");
  EXPECT_TRUE(section.is_in_reasoning());
  section.Take("ink>so");
  section.End();
  EXPECT_FALSE(section.has_ended());
  EXPECT_EQ(listener_.reasoning, "why");
  EXPECT_EQ(listener_.answer, "so");
}

TEST_F(AnswerSectionTest, AFreeOneEndsBehindTheLastCallThatMayCome) {
  const ToolUse tools = TestTools();
  const AnswerSetup setup = MakeSetup(&tools);
  AnswerForm form(setup);
  AnswerCalls calls = Calls(form);
  FreeSection section(setup, form, calls, listener_);
  section.Begin(0);
  section.Take(R"({"name": "time", "arguments": {}})");
  EXPECT_FALSE(section.has_ended());
  EXPECT_TRUE(calls.is_behind_call());
  section.Take("\n\nDone. ");
  EXPECT_FALSE(calls.is_behind_call());
  is_full_ = true;
  section.Take(R"({"name": "time", "arguments": {"at": 1}} and more)");
  EXPECT_TRUE(section.is_last());
  EXPECT_FALSE(section.next());
  EXPECT_EQ(listener_.answer, "Done. ");
  ASSERT_EQ(listener_.calls.size(), 2u);
  EXPECT_EQ(listener_.calls[1].arguments, R"({"at": 1})");
}

TEST_F(AnswerSectionTest, ArgumentsEndInTheMiddleOfAText) {
  const ToolUse tools = TestTools();
  const AnswerSetup setup = MakeSetup(&tools);
  AnswerForm form(setup);
  AnswerCalls calls = Calls(form);
  ArgumentsSection section(calls);
  section.BeginCall({.name = "add"}, nullptr);
  section.Begin(5);
  section.Take(R"({"a": )");
  EXPECT_FALSE(section.has_ended());
  section.Take("1}, then");
  ASSERT_TRUE(section.next());
  EXPECT_EQ(section.next()->kind, SectionKind::kFree);
  EXPECT_EQ(section.next()->at, 5 + std::string_view(R"({"a": 1})").size());
  section.Take("ignored");
  EXPECT_EQ(listener_.calls.at(0).arguments, R"({"a": 1})");
  // What is no JSON ends the answer.
  section.BeginCall({.name = "add"}, nullptr);
  section.Begin(0);
  section.Take("{]");
  EXPECT_TRUE(section.is_last());
}

TEST_F(AnswerSectionTest, AShapedOneIsTheAnswer) {
  ShapedSection section(listener_);
  section.Begin(0);
  section.TakeToken({.text = "{"});
  section.Take("{}");
  EXPECT_EQ(listener_.answer, "{}");
  EXPECT_EQ(listener_.tokens.size(), 1u);
  EXPECT_FALSE(section.has_ended());
}

}  // namespace
}  // namespace cria::server
