// The C++17 wrapper, compiled without exceptions and RTTI.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "cria/cria.hpp"

namespace {

cria::Model LoadDemo() {
  cria::ModelOptions options;
  options.path = CRIA_DEMO_MODEL;
  options.num_threads = 1;
  cria::Result<cria::Model> model = cria::Model::Load(options);
  EXPECT_TRUE(model) << model.error().message;
  return std::move(*model);
}

cria::GenerationOptions Greedy() {
  cria::GenerationOptions options;
  options.temperature = 0.0f;
  options.max_tokens = 60;
  return options;
}

TEST(WrapperTest, Chats) {
  cria::Model model = LoadDemo();
  cria::Result<cria::Chat> chat = cria::Chat::Create(model, "", Greedy());
  ASSERT_TRUE(chat) << chat.error().message;
  std::string streamed;
  const cria::Result<cria::Reply> reply =
      chat->Send("Hello! Who are you?", [&](std::string_view text) {
        streamed += text;
        return true;
      });
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_NE(reply->text.find("Cria"), std::string::npos);
  EXPECT_EQ(reply->text, streamed);
  EXPECT_EQ(reply->stop_reason, CRIA_STOP_END);
  EXPECT_EQ(chat->context_used(), reply->context_used_tokens);
  EXPECT_FALSE(chat->has_forgotten());
  EXPECT_EQ(chat->Reset().status, CRIA_OK);
  EXPECT_EQ(chat->context_used(), 0u);
  EXPECT_EQ(chat->Send("Hello! Who are you?")->text, reply->text);
}

TEST(WrapperTest, ACallbackStops) {
  cria::Model model = LoadDemo();
  const cria::Result<cria::Reply> reply =
      model.Complete("Hello! I am", Greedy(), [](std::string_view) { return false; });
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->stop_reason, CRIA_STOP_CANCELLED);
}

TEST(WrapperTest, TellsOfPacking) {
  cria::ModelOptions options;
  options.path = CRIA_DEMO_MODEL;
  uint64_t done = 0, total = 1;
  const cria::Result<cria::Model> model =
      cria::Model::Load(options, [&](uint64_t done_bytes, uint64_t total_bytes) {
        done = done_bytes;
        total = total_bytes;
        return true;
      });
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(done, total);
  const cria::Result<cria::Model> stopped =
      cria::Model::Load(options, [](uint64_t, uint64_t) { return false; });
  EXPECT_EQ(stopped.error().status, CRIA_ERROR_CANCELLED);
}

TEST(WrapperTest, Tokens) {
  const cria::Model model = LoadDemo();
  const auto tokens = model.Tokenize("a baby llama", false);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(*model.Detokenize(*tokens), "a baby llama");
  EXPECT_TRUE(model.Tokenize("", false)->empty());
  EXPECT_EQ(*model.Detokenize({}), "");
  EXPECT_EQ(model.info().vocab_size, 1536u);
}

TEST(WrapperTest, ErrorsAreValues) {
  const cria::Result<cria::Model> missing = cria::Model::Load("/nowhere/model.cria");
  EXPECT_FALSE(missing);
  EXPECT_EQ(missing.error().status, CRIA_ERROR_NOT_FOUND);
  EXPECT_NE(missing.error().message.find("/nowhere/model.cria"), std::string::npos);
  // What failed is an empty handle, which every function refuses.
  cria::Model empty;
  EXPECT_EQ(empty.Complete("a").error().status, CRIA_ERROR_USAGE);
  EXPECT_EQ(cria::Chat::Create(empty).error().status, CRIA_ERROR_USAGE);
  EXPECT_EQ(empty.Tokenize("a").error().status, CRIA_ERROR_USAGE);
  empty.Cancel();
}

}  // namespace
