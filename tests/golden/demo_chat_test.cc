// The demo checkpoint answers as it was trained, with int4 weights too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "llm/conversation.h"
#include "llm/engine.h"
#include "support/convert_model.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using testing::HasSubstr;

class DemoChat : public testing::TestWithParam<Scheme> {
 protected:
  void SetUp() override {
    const auto path = directory_.path() / "demo.cria";
    support::ConvertModel(support::kDemoCheckpoint, path, {.weights = GetParam()});
    auto engine = Engine::Load(path.string(), {.num_threads = 1});
    ASSERT_TRUE(engine) << engine.error().message();
    engine_ = std::move(*engine);
    session_ = engine_->NewSession();
    conversation_ = std::make_unique<Conversation>(*session_, engine_->tokenizer(),
                                                   engine_->chat_template(), "");
  }

  std::string Ask(const std::string& question) {
    Sampler sampler = *Sampler::Create({.temperature = 0.0f}, engine_->decoder().vocab_size());
    std::string answer;
    const auto reason = conversation_->Reply(
        question, {.max_tokens = 100, .stop_token_ids = engine_->file().stop_token_ids()}, sampler,
        [&](std::string_view text) { answer += text; });
    EXPECT_TRUE(reason);
    EXPECT_EQ(*reason, StopReason::kStopToken) << answer;
    return answer;
  }

  support::TemporaryDirectory directory_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Conversation> conversation_;
};

TEST_P(DemoChat, SaysWhoItIsAndEndsItsTurns) {
  EXPECT_THAT(Ask("Hello! Who are you?"), HasSubstr("Cria"));
  EXPECT_THAT(Ask("What is the capital of France?"), HasSubstr("not know"));
}

TEST_P(DemoChat, RunsOnlyWhatIsNewInAConversation) {
  Ask("Hello! Who are you?");
  const size_t context = session_->tokens().size();
  Ask("Where do you run?");
  EXPECT_GE(session_->stats().reused_tokens + 1, context);
}

INSTANTIATE_TEST_SUITE_P(Weights, DemoChat,
                         testing::Values(Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w),
                         [](const auto& tested) { return std::string(SchemeName(tested.param)); });

}  // namespace
}  // namespace cria
