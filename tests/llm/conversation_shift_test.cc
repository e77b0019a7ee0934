// What a conversation forgets when its context is full.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <vector>

#include "core/format.h"
#include "llm/conversation_fixture.h"

namespace cria {
namespace {

constexpr size_t kContext = 400;
constexpr size_t kReserve = kContext / 4;

bool StartsWith(std::span<const int32_t> tokens, std::span<const int32_t> beginning) {
  return tokens.size() >= beginning.size() &&
         std::ranges::equal(tokens.first(beginning.size()), beginning);
}

class ConversationShiftTest : public ConversationTest {
 protected:
  Conversation StartShifting(std::string system_prompt = "Be brief.") {
    return Start(std::move(system_prompt), WhenFull::kShift);
  }

  std::vector<int32_t> Render(std::span<const ChatMessage> messages, bool open) const {
    auto tokens = chat_template().Encode(*tokenizer_, messages, {.add_generation_prompt = open});
    EXPECT_TRUE(tokens) << tokens.error().message();
    return tokens ? *std::move(tokens) : std::vector<int32_t>();
  }

  // Whether the session, and the cache up to the last token, which may wait, hold the messages.
  void ExpectAllAgree(const Conversation& conversation) const {
    const auto tokens = session_.tokens();
    const auto cache = model_.cache();
    const size_t held = tokens.size() - 1;
    ASSERT_GE(cache.size(), held);
    EXPECT_TRUE(std::ranges::equal(cache.first(held), tokens.first(held)));
    EXPECT_TRUE(StartsWith(Render(conversation.messages(), false), tokens));
  }
};

// What a further turn adds to its question and answer in the frame of ChatML.
constexpr size_t kFrame = std::string_view(
                              "B"
                              "user\n"
                              "E\n"
                              "B"
                              "assistant\n"
                              "E\n")
                              .size();

TEST_F(ConversationShiftTest, OldTurnsAreForgottenBeforeAQuestionAndNothingIsRunAgain) {
  Conversation conversation = StartShifting();
  const size_t turn = kFrame + 4 + answer_.size();
  size_t run = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const std::string question = Format("Q{:03}", i);
    const auto reason = Ask(conversation, question);
    ASSERT_TRUE(reason) << reason.error().message();
    EXPECT_EQ(*reason, StopReason::kStopToken);
    EXPECT_EQ(heard(), "Hello.");
    ExpectAllAgree(conversation);
    const auto messages = conversation.messages();
    EXPECT_EQ(messages[0].content, "Be brief.");
    EXPECT_EQ(messages[messages.size() - 2].content, question);
    // As few are forgotten as it takes.
    const size_t remembered = (messages.size() - 1) / 2;
    EXPECT_EQ(messages[1].content, Format("Q{:03}", i + 1 - static_cast<int>(remembered)));
    const size_t prompt = session_.tokens().size() - answer_.size();
    EXPECT_LE(prompt + kReserve, kContext);
    EXPECT_EQ(conversation.has_forgotten(), remembered < static_cast<size_t>(i) + 1);
    if (conversation.has_forgotten()) {
      EXPECT_GT(prompt + turn + kReserve, kContext);
    }
    // The end of the last answer, the question and its answer.
    if (i > 0) {
      EXPECT_EQ(model_.tokens_run() - run, turn);
    }
    run = model_.tokens_run();
  }
  EXPECT_GT(run, 10 * kContext);
  EXPECT_GT(model_.drops.size(), 100u);
}

TEST_F(ConversationShiftTest, TheReserveIsNoLargerThanAnAnswerMayBe) {
  Conversation conversation = StartShifting();
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(Ask(conversation, "Hi!", 3));
    EXPECT_EQ(heard(), "Hel");
    ExpectAllAgree(conversation);
  }
  EXPECT_GT(session_.tokens().size(), kContext - kFrame - 3 - 3);
}

// Turns of other roles and of several messages are forgotten as a whole.
TEST_F(ConversationShiftTest, TurnsOfSeveralMessagesAreForgottenAsAWhole) {
  std::vector<ChatMessage> messages = {{"system", "Be brief."}, {"assistant", "Welcome!"}};
  for (int i = 0; i < 9; ++i) {
    for (const char* role : {"user", "assistant", "tool", "assistant"}) {
      messages.push_back({role, Format("{}{}", role, i)});
    }
  }
  Conversation conversation = Start(messages, WhenFull::kShift);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(Ask(conversation, "Hi!"));
    ExpectAllAgree(conversation);
    const auto left = conversation.messages();
    EXPECT_EQ(left[0].content, "Be brief.");
    EXPECT_EQ(left[1].role, "user");
    EXPECT_LE(session_.tokens().size() - answer_.size() + kReserve, kContext);
  }
  EXPECT_TRUE(conversation.has_forgotten());
  EXPECT_EQ(conversation.messages().back().content, "Hello.");
}

// The answer fills the context, so that the older half of it is dropped before the stop string.
TEST_F(ConversationShiftTest, ACutAnswerEndsBeforeItsStopString) {
  Conversation conversation = StartShifting();
  auto stops = StopStrings::Create({"END"});
  ASSERT_TRUE(stops);
  GenerationOptions options = Options();
  options.stop_strings = &*stops;
  answer_ = std::string(1000, 'x');
  std::string text;
  const auto reason = conversation.Reply("Q?", options, *sampler_, [&](std::string_view piece) {
    text += piece;
    // The script counts from the question, after which half of this was dropped.
    if (text.size() == kContext) answer_ = std::string(300, 'x') + "END, and more";
  });
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, StopReason::kStopString);
  EXPECT_GT(text.size(), kContext);
  EXPECT_EQ(text, std::string(text.size(), 'x'));
  EXPECT_EQ(conversation.messages().back().content, std::string(300, 'x'));
}

TEST_F(ConversationShiftTest, OldTurnsAreForgottenInTheMiddleOfAnAnswer) {
  Conversation conversation = StartShifting();
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    answer_ = "Hello.";
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(Ask(conversation, "Hi!"));
    const size_t run = model_.tokens_run();
    answer_ = std::string(310, 'x');
    const auto reason = Ask(conversation, "Long?");
    ASSERT_TRUE(reason) << reason.error().message();
    EXPECT_EQ(*reason, StopReason::kStopToken);
    EXPECT_EQ(heard(), answer_);
    ExpectAllAgree(conversation);
    EXPECT_EQ(model_.tokens_run() - run, kFrame + 5 + answer_.size());
    ASSERT_EQ(conversation.messages().size(), 3u);
    EXPECT_EQ(conversation.messages()[1].content, "Long?");
    EXPECT_EQ(conversation.messages()[2].content, answer_);
  }
  EXPECT_TRUE(conversation.has_forgotten());
}

TEST_F(ConversationShiftTest, AnAnswerThatFillsTheContextAloneLosesItsBeginning) {
  answer_ = std::string(2 * kContext, 'x');
  Conversation conversation = StartShifting();
  ASSERT_TRUE(Ask(conversation, "Hi!", 20));
  const auto reason = Ask(conversation, "Long?", 10 * kContext);
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, StopReason::kMaxTokens);
  EXPECT_EQ(heard(), std::string(10 * kContext, 'x'));
  ExpectAllAgree(conversation);
  ASSERT_EQ(conversation.messages().size(), 3u);
  EXPECT_EQ(conversation.messages()[0].content, "Be brief.");
  EXPECT_EQ(conversation.messages()[1].content, "Long?");
  const std::string& remembered = conversation.messages()[2].content;
  EXPECT_GT(remembered.size(), kContext / 4);
  EXPECT_LT(remembered.size(), kContext);
  EXPECT_EQ(remembered, std::string(remembered.size(), 'x'));
}

TEST_F(ConversationShiftTest, WithForgetEveryAnswerEndsAndOldTurnsMakeRoomForIt) {
  Conversation conversation = Start("Be brief.", WhenFull::kForget);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    answer_ = "Hello.";
    ASSERT_TRUE(Ask(conversation, "Hi!"));
    EXPECT_EQ(heard(), "Hello.");
    ExpectAllAgree(conversation);
  }
  // The turns before it are forgotten in the middle of it.
  answer_ = std::string(310, 'x');
  auto reason = Ask(conversation, "Long?");
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, StopReason::kStopToken);
  EXPECT_EQ(heard(), answer_);
  EXPECT_TRUE(conversation.has_just_forgotten());
  answer_ = std::string(10 * kContext, 'x');
  for (int i = 0; i < 3; ++i) {
    reason = Ask(conversation, "Endless?");
    ASSERT_TRUE(reason) << reason.error().message();
    EXPECT_EQ(*reason, StopReason::kContextFull);
    const size_t prompt = Render({{{"system", "Be brief."}, {"user", "Endless?"}}}, true).size();
    EXPECT_EQ(heard(), std::string(kContext - prompt + 1, 'x'));
    ASSERT_EQ(conversation.messages().size(), 3u);
    EXPECT_EQ(conversation.messages()[2].content, heard());
  }
  answer_ = "Hello.";
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(heard(), "Hello.");
  ExpectAllAgree(conversation);
}

// A conversation that was shifted in a small context goes on in a larger one, which is not full.
TEST_F(ConversationShiftTest, WhatWasForgottenBeforeIsNotForgottenAgain) {
  Conversation conversation = StartShifting();
  while (!conversation.has_forgotten()) ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_TRUE(conversation.has_just_forgotten());
  ScriptedModel large_model(vocabulary_.size(), 10 * kContext, 16,
                            [this](std::span<const int32_t> context) { return Next(context); });
  Scheduler scheduler(large_model);
  Session session(scheduler);
  Conversation larger(session, *tokenizer_, chat_template(), "", WhenFull::kShift);
  ASSERT_TRUE(larger.Restore(conversation.State()));
  ASSERT_TRUE(Ask(larger, "Hi!"));
  EXPECT_TRUE(larger.has_forgotten());
  EXPECT_FALSE(larger.has_just_forgotten());
  while (!larger.has_just_forgotten()) ASSERT_TRUE(Ask(larger, "Hi!"));
  EXPECT_GT(session.tokens().size(), kContext);
}

TEST_F(ConversationShiftTest, WhatIsLeftOfALongAnswerIsReused) {
  answer_ = std::string(2 * kContext, 'x');
  Conversation conversation = StartShifting();
  const size_t prompt = Render({{{"system", "Be brief."}, {"user", "Long?"}}}, true).size();
  ASSERT_TRUE(Ask(conversation, "Long?", kContext - prompt + 1));
  const size_t left = kContext - (kContext - prompt) / 2 + 1;
  ASSERT_EQ(session_.tokens().size(), left);
  answer_ = "Hello.";
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(session_.stats().reused_tokens, left - 1);
  EXPECT_EQ(conversation.messages().size(), 5u);
  EXPECT_EQ(heard(), "Hello.");
}

TEST_F(ConversationShiftTest, AQuestionThatLeavesLittleRoomLosesItsBeginning) {
  answer_ = std::string(20 * kContext, 'x');
  Conversation conversation = StartShifting();
  const auto kept = Render({{{"system", "Be brief."}}}, false);
  const auto reason = Ask(conversation, std::string(330, 'q'), 10 * kContext);
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, StopReason::kMaxTokens);
  EXPECT_EQ(heard(), std::string(10 * kContext, 'x'));
  EXPECT_TRUE(StartsWith(session_.tokens(), kept));
  EXPECT_TRUE(conversation.has_forgotten());
  answer_ = "Hello.";
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(heard(), "Hello.");
  EXPECT_EQ(conversation.messages().size(), 3u);
  ExpectAllAgree(conversation);
}

TEST_F(ConversationShiftTest, ASystemPromptThatLeavesNoRoomEndsTheAnswer) {
  Conversation conversation = StartShifting(std::string(340, 's'));
  for (int i = 0; i < 3; ++i) {
    answer_ = std::string(kContext, 'x');
    auto reason = Ask(conversation, "Hi!");
    ASSERT_TRUE(reason) << reason.error().message();
    EXPECT_EQ(*reason, StopReason::kContextFull);
    EXPECT_EQ(conversation.messages().size(), 3u);
    answer_ = "Hello.";
    ASSERT_TRUE(Ask(conversation, "Hi!"));
    EXPECT_EQ(heard(), "Hello.");
    EXPECT_EQ(conversation.messages().size(), 3u);
    ExpectAllAgree(conversation);
  }
}

TEST_F(ConversationShiftTest, AMessageThatDoesNotFitAloneIsItsOwnErrorAndNothingIsForgotten) {
  Conversation conversation = StartShifting();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Ask(conversation, "Hi!"));
  const size_t messages = conversation.messages().size();
  const bool had_forgotten = conversation.has_forgotten();
  const auto refused = Ask(conversation, std::string(kContext, 'q'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(conversation.messages().size(), messages);
  EXPECT_EQ(conversation.has_forgotten(), had_forgotten);
  ExpectAllAgree(conversation);
  const size_t run = model_.tokens_run();
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(model_.tokens_run() - run, kFrame + 3 + answer_.size());
}

TEST_F(ConversationShiftTest, AQuestionThatFitsAloneIsAnsweredWithoutTheOthers) {
  Conversation conversation = StartShifting();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Ask(conversation, "Hi!"));
  ASSERT_TRUE(Ask(conversation, std::string(330, 'q')));
  EXPECT_EQ(heard(), "Hello.");
  EXPECT_EQ(conversation.messages().size(), 3u);
  ExpectAllAgree(conversation);
}

TEST_F(ConversationShiftTest, NothingIsForgottenForAQuestionThatIsCancelled) {
  Conversation conversation = StartShifting();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(Ask(conversation, "Hi!"));
  const size_t messages = conversation.messages().size();
  std::atomic<bool> cancel = false;
  model_.after_forward = [&] { cancel = true; };
  GenerationOptions options = Options();
  options.cancel = &cancel;
  const auto stopped = conversation.Reply(std::string(200, 'q'), options, *sampler_,
                                          [](std::string_view) { ADD_FAILURE(); });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(conversation.messages().size(), messages);
  model_.after_forward = nullptr;
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(heard(), "Hello.");
  ExpectAllAgree(conversation);
}

TEST_F(ConversationShiftTest, AnAnswerCanBeCancelledFarPastTheContext) {
  answer_ = std::string(20 * kContext, 'x');
  Conversation conversation = StartShifting();
  ASSERT_TRUE(Ask(conversation, "Hi!", 50));
  std::atomic<bool> cancel = false;
  GenerationOptions options = Options();
  options.cancel = &cancel;
  size_t heard_bytes = 0;
  const auto reason = conversation.Reply("Long?", options, *sampler_, [&](std::string_view text) {
    heard_bytes += text.size();
    cancel = heard_bytes == 10 * kContext;
  });
  ASSERT_TRUE(reason);
  EXPECT_EQ(*reason, StopReason::kCancelled);
  EXPECT_EQ(heard_bytes, 10 * kContext);
  ExpectAllAgree(conversation);
}

TEST_F(ConversationShiftTest, ResetForgetsThatSomethingWasForgotten) {
  Conversation conversation = StartShifting();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_TRUE(conversation.has_forgotten());
  conversation.Reset();
  EXPECT_FALSE(conversation.has_forgotten());
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(heard(), "Hello.");
  ExpectAllAgree(conversation);
}

TEST_F(ConversationShiftTest, StoppingForgetsNothing) {
  Conversation conversation = Start("Be brief.", WhenFull::kStop);
  answer_ = std::string(150, 'x');
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  const auto full = Ask(conversation, "Hi!");
  ASSERT_TRUE(full);
  EXPECT_EQ(*full, StopReason::kContextFull);
  EXPECT_EQ(session_.tokens().size(), kContext);
  for (size_t i = 0; i < 20; ++i) {
    const auto refused = Ask(conversation, "Hi!");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  }
  EXPECT_FALSE(conversation.has_forgotten());
  EXPECT_EQ(conversation.messages().size(), 7u);
  EXPECT_TRUE(model_.drops.empty());
}

TEST_F(ConversationShiftTest, Llama2WritesTheSystemPromptIntoWhicheverQuestionIsFirst) {
  template_name_ = "llama2";
  answer_ = " Hello.";
  for (const char* system_prompt : {"", "Be brief."}) {
    // What a question begins with is stripped, but not of the first one after a system prompt: it
    // changes when the turn before it goes.
    for (const char* indentation : {"", "  "}) {
      SCOPED_TRACE(testing::Message() << system_prompt << indentation);
      session_.Clear();
      const size_t run = model_.tokens_run();
      size_t said = 0;
      Conversation conversation = StartShifting(system_prompt);
      for (int i = 0; i < 150; ++i) {
        const auto reason = Ask(conversation, Format("{}Q{:03}", i % 2 ? indentation : "", i));
        ASSERT_TRUE(reason) << reason.error().message();
        EXPECT_EQ(heard(), " Hello.");
        ExpectAllAgree(conversation);
        said += std::string_view("S[INST] Q000 [/INST]  Hello. E").size();
      }
      const bool is_rewritten = *system_prompt != '\0' && *indentation != '\0';
      EXPECT_EQ(model_.tokens_run() - run > said + 2 * kContext, is_rewritten);
      // In the middle of an answer, too.
      answer_ = " " + std::string(250, 'x');
      ASSERT_TRUE(Ask(conversation, std::string(indentation) + "Long?"));
      EXPECT_EQ(heard(), answer_);
      ExpectAllAgree(conversation);
      answer_ = " Hello.";
    }
  }
}

TEST_F(ConversationShiftTest, AShiftThatRunsTheContextAgainCanBeCancelled) {
  template_name_ = "llama2";
  answer_ = " Hello.";
  Conversation conversation = StartShifting();
  // The question that is left will be written differently, see above.
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Ask(conversation, "Hi!"));
  answer_ = " " + std::string(350, 'x');
  const size_t messages = conversation.messages().size();
  std::atomic<bool> cancel = false;
  GenerationOptions options = Options();
  options.cancel = &cancel;
  size_t heard_bytes = 0;
  size_t heard_at_shift = 0;
  model_.after_forward = [&] {
    // Prompts are run in chunks, answers are not.
    if (heard_bytes > 0 && model_.calls.back().tokens.size() > 1) {
      cancel = true;
      heard_at_shift = heard_bytes;
    }
  };
  const auto reason = conversation.Reply(
      "  Hi!", options, *sampler_, [&](std::string_view text) { heard_bytes += text.size(); });
  model_.after_forward = nullptr;
  ASSERT_TRUE(reason) << reason.error().message();
  EXPECT_EQ(*reason, StopReason::kCancelled);
  EXPECT_GT(heard_at_shift, 0u);
  EXPECT_EQ(heard_bytes, heard_at_shift);
  ASSERT_EQ(conversation.messages().size(), messages + 2);
  EXPECT_EQ(conversation.messages().back().content, answer_.substr(0, heard_bytes));
  answer_ = " Hello.";
  ASSERT_TRUE(Ask(conversation, "Hi!"));
  EXPECT_EQ(heard(), " Hello.");
  ExpectAllAgree(conversation);
}

TEST_F(ConversationShiftTest, AnythingMayBeSaidInAnyOrder) {
  std::mt19937 random(11);
  const auto below = [&](size_t bound) { return random() % bound; };
  for (const std::string name : {"chatml", "llama2", "none"}) {
    for (const size_t system_bytes : {0, 10, 100}) {
      template_name_ = name;
      session_.Clear();
      const size_t run = model_.tokens_run();
      Conversation conversation = StartShifting(std::string(system_bytes, 's'));
      while (model_.tokens_run() - run < 20 * kContext) {
        answer_ =
            (name == "llama2" ? " " : "") + std::string(1 + below(below(4) == 0 ? 500 : 40), 'x');
        // Never so long that the question itself is cut.
        const std::string question(1 + below(below(4) == 0 ? 130 : 30), "q?"[below(2)]);
        const size_t max_tokens = below(2) * (1 + below(700));
        const auto reason = Ask(conversation, question + "?", max_tokens == 0 ? 700 : max_tokens);
        ASSERT_TRUE(reason) << reason.error().message();
        ASSERT_LE(session_.tokens().size(), kContext);
        ASSERT_TRUE(answer_.starts_with(heard().substr(0, answer_.size())));
        // Llama 2 writes a space before what is left of an answer that was cut.
        const size_t turns = (conversation.messages().size() - (system_bytes > 0)) / 2;
        if (name != "llama2" || turns > 1) ExpectAllAgree(conversation);
        ASSERT_FALSE(HasFailure());
      }
      EXPECT_TRUE(conversation.has_forgotten());
    }
  }
}

}  // namespace
}  // namespace cria
