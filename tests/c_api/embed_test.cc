// Embeddings of texts by the C API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

class EmbedTest : public testing::Test {
 protected:
  std::vector<float> Embed(const std::string& text) {
    size_t count = 0;
    EXPECT_EQ(cria_embed(model_.get(), text.data(), text.size(), nullptr, nullptr, 0, &count),
              CRIA_OK);
    std::vector<float> embedding(count + 1, 7.0f);
    EXPECT_EQ(cria_embed(model_.get(), text.data(), text.size(), nullptr, embedding.data(), count,
                         &count),
              CRIA_OK)
        << cria_error_message();
    // Nothing behind it is written.
    EXPECT_EQ(embedding.back(), 7.0f);
    embedding.pop_back();
    return embedding;
  }

  const ModelPtr model_ = LoadModel();
};

TEST_F(EmbedTest, EmbeddingsHaveALengthOfOneAndDoNotDependOnOthers) {
  const std::vector<float> first = Embed("a baby llama");
  double square = 0.0;
  for (const float number : first) square += static_cast<double>(number) * number;
  EXPECT_NEAR(square, 1.0, 1e-5);
  EXPECT_NE(Embed("two llamas"), first);
  EXPECT_EQ(Embed("a baby llama"), first);
  std::vector<float> others[2];
  {
    std::vector<std::jthread> threads;
    for (std::vector<float>& other : others) {
      threads.emplace_back([&] { other = Embed("a baby llama"); });
    }
  }
  EXPECT_THAT(others, testing::Each(first));
}

TEST_F(EmbedTest, BadInputIsRefused) {
  float number = 7.0f;
  size_t count = 0;
  const auto embed = [&](const char* text, size_t bytes, size_t capacity, size_t* size) {
    return cria_embed(model_.get(), text, bytes, nullptr, &number, capacity, size);
  };
  EXPECT_EQ(embed("a", 1, 1, &count), CRIA_ERROR_OUT_OF_RANGE);
  EXPECT_GT(count, 1u);
  EXPECT_EQ(embed("a", 1, count, nullptr), CRIA_ERROR_USAGE);
  EXPECT_EQ(embed(nullptr, 1, count, &count), CRIA_ERROR_USAGE);
  EXPECT_EQ(cria_embed(nullptr, "a", 1, nullptr, &number, 1, &count), CRIA_ERROR_USAGE);
  std::vector<float> embedding(count);
  const std::string long_text(100'000, 'x');
  EXPECT_EQ(cria_embed(model_.get(), long_text.data(), long_text.size(), nullptr, embedding.data(),
                       count, &count),
            CRIA_ERROR_OUT_OF_RANGE);
  EXPECT_EQ(number, 7.0f);
}

TEST_F(EmbedTest, ACallbackHearsOfTokensAndStops) {
  struct Heard {
    std::vector<uint32_t> done;
    int answer = 0;
  } heard;
  cria_callbacks callbacks = CRIA_CALLBACKS_INIT;
  callbacks.data = &heard;
  callbacks.on_prompt = [](uint32_t done, uint32_t, void* data) {
    auto& to = *static_cast<Heard*>(data);
    to.done.push_back(done);
    return to.answer;
  };
  std::vector<float> embedding = Embed("a baby llama");
  size_t count = 0;
  const auto embed = [&] {
    return cria_embed(model_.get(), "a baby llama", CRIA_ZERO_TERMINATED, &callbacks,
                      embedding.data(), embedding.size(), &count);
  };
  EXPECT_EQ(embed(), CRIA_OK);
  EXPECT_EQ(heard.done.front(), 0u);
  EXPECT_EQ(heard.done.size(), 2u);
  heard.answer = 1;
  EXPECT_EQ(embed(), CRIA_ERROR_CANCELLED);
}

}  // namespace
}  // namespace cria_test
