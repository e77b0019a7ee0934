// The C++17 wrapper, compiled without exceptions and RTTI.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "c_api/fixture_models.h"
#include "cria/cria.hpp"

namespace {

cria::Model LoadDemo() {
  cria::ModelOptions options;
  options.path = cria_test::kDemoModel;
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

TEST(WrapperTest, AnAnswerMatchesItsConstraint) {
  cria::ModelOptions model_options;
  model_options.path = cria_test::kDemoModel;
  model_options.num_threads = 1;
  model_options.max_constraints = 1;
  cria::Result<cria::Model> model = cria::Model::Load(model_options);
  ASSERT_TRUE(model) << model.error().message;
  cria::GenerationOptions options = Greedy();
  options.constraint_kind = CRIA_CONSTRAINT_REGEX;
  options.constraint_text = "b{3}";
  const cria::Result<cria::Reply> reply = model->Complete("llama", options);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->text, "bbb");
}

using Messages = std::vector<cria::Message>;

std::string Written(const Messages& messages) {
  std::string text;
  for (const cria::Message& message : messages) {
    text += message.role + ": " + message.content + "\n";
  }
  return text;
}

TEST(WrapperTest, MessagesGoInAndOut) {
  cria::Model model = LoadDemo();
  const Messages given = {{"system", "You are a friendly assistant."},
                          {"user", std::string("a\0b", 3)}};
  cria::Result<cria::Chat> chat = cria::Chat::FromMessages(model, given, Greedy());
  ASSERT_TRUE(chat) << chat.error().message;
  EXPECT_EQ(Written(chat->messages()), Written(given));
  const cria::Result<cria::Reply> first = chat->Answer();
  ASSERT_TRUE(first) << first.error().message;
  const std::string all = Written(given) + "assistant: " + first->text + "\n";
  EXPECT_EQ(Written(chat->messages()), all);
  EXPECT_EQ(chat->Regenerate()->text, first->text);
  ASSERT_TRUE(chat->Send(cria::Message{"tool", "42"}));
  ASSERT_TRUE(chat->Send("Hello!"));
  EXPECT_EQ(chat->DropLastTurn().status, CRIA_OK);
  EXPECT_EQ(chat->DropLastTurn().status, CRIA_OK);
  EXPECT_EQ(chat->messages().size(), 1u);
  EXPECT_EQ(chat->DropLastTurn().status, CRIA_ERROR_USAGE);
  EXPECT_EQ(chat->Answer().error().status, CRIA_ERROR_USAGE);
  EXPECT_EQ(*model.Render({{"user", "Hi"}}),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(*model.Render({{"user", "Hi"}}, false), "<|im_start|>user\nHi<|im_end|>\n");
  EXPECT_EQ(model.Render({}, false, "x").error().status, CRIA_ERROR_USAGE);
  EXPECT_EQ(chat->SetVariables("{\"a\": 1}").status, CRIA_OK);
  EXPECT_EQ(chat->SetVariables("a").status, CRIA_ERROR_USAGE);
}

TEST(WrapperTest, AnswersAreSteeredAndWatched) {
  cria::Model model = LoadDemo();
  cria::GenerationOptions options = Greedy();
  options.stop = {"###", " a baby"};
  options.bias = {{5, -1.0f}};
  cria::Result<cria::Chat> chat = cria::Chat::Create(model, "", options);
  ASSERT_TRUE(chat) << chat.error().message;
  std::string text;
  size_t tokens = 0;
  uint32_t read = 0;
  cria::Callbacks callbacks = [&](std::string_view piece) {
    text += piece;
    return true;
  };
  callbacks.on_token = [&](const cria_token& token) {
    EXPECT_EQ(token.index, tokens++);
    EXPECT_LE(token.log_probability, 0.0);
    return true;
  };
  callbacks.on_prompt = [&](uint32_t done, uint32_t) {
    read = done;
    return true;
  };
  const cria::Result<cria::Reply> reply = chat->Send("Hello! Who are you?", callbacks);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->text, "Hello! I am Cria,");
  EXPECT_EQ(text, reply->text);
  EXPECT_EQ(reply->stop_reason, CRIA_STOP_STRING);
  EXPECT_EQ(tokens, reply->generated_tokens);
  EXPECT_EQ(read, reply->prompt_tokens);
  options.stop.clear();
  EXPECT_EQ(chat->SetOptions(options).status, CRIA_OK);
  callbacks.on_token = [](const cria_token& token) { return token.index < 2; };
  EXPECT_EQ(chat->Send("Hello! Who are you?", callbacks)->generated_tokens, 3u);
  callbacks.on_prompt = [](uint32_t, uint32_t) { return false; };
  EXPECT_EQ(chat->Send("Hello!", callbacks).error().status, CRIA_ERROR_CANCELLED);

  EXPECT_EQ(model.Logits("Hello! I am")->size(), 1536u);
  EXPECT_EQ(chat->Logits()->size(), 1536u);
  EXPECT_EQ(model.Logits(std::string(2000, '?')).error().status, CRIA_ERROR_OUT_OF_RANGE);
  chat->Cancel();
  EXPECT_EQ(chat->Send("Hello!").error().status, CRIA_ERROR_CANCELLED);
  chat->ClearCancel();
  EXPECT_TRUE(chat->Send("Hello!", nullptr));
  options.bias = {{-1, 0.0f}};
  EXPECT_EQ(chat->SetOptions(options).status, CRIA_ERROR_USAGE);
}

TEST(WrapperTest, KeepsChats) {
  const cria::Model model = LoadDemo();
  cria::Result<cria::Chat> chat = cria::Chat::Create(model, "Be kind.");
  ASSERT_TRUE(chat);
  const std::string path = testing::TempDir() + "wrapper_test.session";
  EXPECT_EQ(chat->Save(path).status, CRIA_OK);
  bool is_context_restored = false;
  ASSERT_TRUE(chat->Send("Hello!"));
  EXPECT_EQ(chat->Save(path).status, CRIA_OK);
  const auto loaded = cria::Chat::Load(model, path, {}, &is_context_restored);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_TRUE(is_context_restored);
  EXPECT_EQ(loaded->messages().size(), 3u);
  std::remove(path.c_str());
  EXPECT_EQ(cria::Chat::Load(model, path).error().status, CRIA_ERROR_NOT_FOUND);
  EXPECT_EQ(cria::Chat().Save(path).status, CRIA_ERROR_USAGE);
}

TEST(WrapperTest, PlansMemory) {
  cria::ModelOptions options;
  options.path = cria_test::kDemoModel;
  const cria::Result<cria::Plan> plan = cria::Plan::Create(options);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_STREQ(plan->info().name, "cria-demo");
  uint64_t mapped = 0;
  uint64_t resident = 0;
  for (const cria::Plan::Part& part : plan->parts()) {
    EXPECT_FALSE(part.name.empty());
    (part.is_mapped ? mapped : resident) += part.bytes;
  }
  EXPECT_EQ(plan->totals().mapped_bytes, mapped);
  EXPECT_EQ(plan->totals().private_bytes, resident);
  EXPECT_EQ(plan->Check().status, CRIA_OK);
  options.memory_limit_bytes = 1'000'000;
  EXPECT_EQ(cria::Plan::Create(options)->Check().status, CRIA_ERROR_OUT_OF_MEMORY);
  options.path = "/nowhere/model.cria";
  EXPECT_EQ(cria::Plan::Create(options).error().status, CRIA_ERROR_NOT_FOUND);
  const cria::Plan empty;
  EXPECT_TRUE(empty.parts().empty());
  EXPECT_EQ(empty.totals().peak_bytes, 0u);
  EXPECT_EQ(empty.Check().status, CRIA_ERROR_USAGE);
}

TEST(WrapperTest, TellsOfPacking) {
  cria::ModelOptions options;
  options.path = cria_test::kDemoModel;
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
