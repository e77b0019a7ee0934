// /v1/embeddings, and ollama's /api/embed and /api/embeddings.

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "llm/embedding_tokens.h"
#include "llm/pooled_hidden.h"
#include "llm/text_embedder.h"
#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using Numbers = std::vector<float>;

class EmbeddingsPathTest : public ApiTest {
 protected:
  Numbers Expected(const std::vector<int32_t>& tokens, size_t num_dimensions = 64) {
    TextEmbedder embedder(engine_->scheduler());
    Numbers numbers(engine_->decoder().hidden_size());
    Unwrap(embedder.Embed(tokens, {}, numbers));
    if (num_dimensions == numbers.size()) return numbers;
    numbers.resize(num_dimensions);
    PooledHidden::Normalize(numbers);
    return numbers;
  }
  Numbers Expected(const std::string& text) {
    return Expected(Unwrap(EmbeddingTokens(*engine_, text)));
  }

  Json Embed(const Json& body) {
    const auto answer = Post("/v1/embeddings", body);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->json();
  }
  // The error of a request that must be refused.
  Json Refusal(const Json& body) {
    const auto answer = Post("/v1/embeddings", body);
    EXPECT_EQ(answer->status, 400) << answer->body;
    return answer->json()["error"];
  }
};

TEST_F(EmbeddingsPathTest, TextsAndTokensInOrder) {
  const Json answer = Embed({{"model", "any"}, {"input", {"One text.", "Another one"}}});
  EXPECT_EQ(answer["object"], "list");
  EXPECT_EQ(answer["model"], "tiny");
  ASSERT_EQ(answer["data"].size(), 2u);
  EXPECT_EQ(answer["data"][0]["object"], "embedding");
  EXPECT_EQ(answer["data"][1]["index"], 1);
  EXPECT_EQ(answer["data"][0]["embedding"].get<Numbers>(), Expected("One text."));
  EXPECT_EQ(answer["data"][1]["embedding"].get<Numbers>(), Expected("Another one"));
  const size_t num_tokens = Unwrap(EmbeddingTokens(*engine_, "One text.")).size() +
                            Unwrap(EmbeddingTokens(*engine_, "Another one")).size();
  EXPECT_EQ(answer["usage"], (Json{{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}));

  EXPECT_EQ(Embed({{"input", "One text."}})["data"][0], answer["data"][0]);
  const std::vector<int32_t> tokens = {5, 6, 7};
  EXPECT_EQ(Embed({{"input", tokens}})["data"][0]["embedding"].get<Numbers>(), Expected(tokens));
  const Json lists = Embed({{"input", {{5, 6, 7}, {8}}}});
  EXPECT_EQ(lists["data"][0]["embedding"].get<Numbers>(), Expected(tokens));
  EXPECT_EQ(lists["data"][1]["embedding"].get<Numbers>(), Expected(std::vector<int32_t>{8}));
  EXPECT_EQ(lists["usage"]["total_tokens"], 4);
}

// More of them than are held at once, of lengths that end in different Forwards.
TEST_F(EmbeddingsPathTest, ManyTextsOfARequestRunTogetherAndAreAsAlone) {
  const size_t num_held = kHeldEmbeddingBytes / (engine_->decoder().hidden_size() * sizeof(float));
  std::vector<std::string> texts;
  for (size_t i = 0; i < num_held + 40; ++i) texts.push_back(std::string(1 + i % 50, 'a'));
  const auto num_forwards = [&] { return engine_->scheduler().stats().num_forwards; };
  // The other thread helps when the system lets it run.
  uint64_t forwards = 0;
  do {
    const uint64_t before = num_forwards();
    const Json data = Embed({{"input", texts}})["data"];
    forwards = num_forwards() - before;
    ASSERT_EQ(data.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(data[i]["index"], i);
    for (const size_t i : {size_t{0}, size_t{49}, num_held - 1, num_held, texts.size() - 1}) {
      EXPECT_EQ(data[i]["embedding"].get<Numbers>(), Expected(texts[i])) << i;
    }
  } while (forwards >= texts.size() && !HasFailure());
  EXPECT_EQ(Post("/api/embed", {{"input", texts}})->json()["embeddings"].size(), texts.size());
}

TEST_F(EmbeddingsPathTest, FloatsInBase64) {
  // 64 floats are 256 bytes, which end with one byte, and two are 8 bytes, which end with two.
  for (const size_t num_dimensions : {64, 2, 3}) {
    const Json answer = Embed(
        {{"input", {5, 6, 7}}, {"dimensions", num_dimensions}, {"encoding_format", "base64"}});
    const auto text = answer["data"][0]["embedding"].get<std::string>();
    std::string bytes;
    uint32_t group = 0;
    int num_bits = 0;
    for (const char character : text.substr(0, text.find('='))) {
      constexpr std::string_view kDigits =
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
      ASSERT_NE(kDigits.find(character), std::string_view::npos);
      group = group << 6 | static_cast<uint32_t>(kDigits.find(character));
      num_bits += 6;
      if (num_bits < 8) continue;
      num_bits -= 8;
      bytes += static_cast<char>(group >> num_bits & 0xff);
    }
    EXPECT_EQ(text.size() % 4, 0u);
    Numbers numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
    EXPECT_EQ(numbers, Expected(std::vector<int32_t>{5, 6, 7}, num_dimensions));
  }
}

TEST_F(EmbeddingsPathTest, FewerDimensionsAreNormalizedAgain) {
  const auto numbers =
      Embed({{"input", "a text"}, {"dimensions", 10}})["data"][0]["embedding"].get<Numbers>();
  ASSERT_EQ(numbers.size(), 10u);
  double square = 0.0;
  for (const float number : numbers) square += static_cast<double>(number) * number;
  EXPECT_NEAR(square, 1.0, 1e-6);
}

TEST_F(EmbeddingsPathTest, WhatIsWrongIsNamed) {
  const auto message = [&](const Json& body) {
    return Refusal(body)["message"].get<std::string>();
  };
  EXPECT_EQ(message(Json::object()), "input is missing");
  EXPECT_EQ(message({{"input", Json::array()}}), "input is an empty list");
  EXPECT_THAT(message({{"input", 7}}), testing::HasSubstr("input is neither"));
  EXPECT_THAT(message({{"input", {"a", 7}}}), testing::HasSubstr("input[1] is neither"));
  EXPECT_THAT(message({{"input", {5, 300}}}), testing::HasSubstr("the token id 300"));
  EXPECT_THAT(message({{"input", std::vector<std::string>(2049, "a")}}),
              testing::HasSubstr("more than 2048 texts"));
  EXPECT_THAT(message({{"input", "a"}, {"dimensions", 65}}), testing::HasSubstr("dimensions"));
  EXPECT_THAT(message({{"input", "a"}, {"dimensions", 0}}), testing::HasSubstr("dimensions"));
  EXPECT_THAT(message({{"input", "a"}, {"encoding_format", "int8"}}),
              testing::HasSubstr("encoding_format"));
  EXPECT_THAT(message({{"input", "a"}, {"embd_normalize", -1}}),
              testing::HasSubstr("embd_normalize"));
  // Nothing was sent of the first one.
  for (const Json& long_input : {Json(std::string(kContextTokens * 8, '~')),
                                 Json(std::vector<int32_t>(kContextTokens + 1, 5))}) {
    const Json error = Refusal({{"input", Json::array({"a", long_input})}});
    EXPECT_EQ(error["code"], "context_length_exceeded");
  }
}

TEST_F(EmbeddingsPathTest, OllamaHasItsOwnForms) {
  const Json one = Post("/api/embed", {{"model", "tiny"}, {"input", "One text."}})->json();
  EXPECT_EQ(one["model"], "tiny");
  ASSERT_EQ(one["embeddings"].size(), 1u);
  EXPECT_EQ(one["embeddings"][0].get<Numbers>(), Expected("One text."));
  EXPECT_EQ(one["prompt_eval_count"], Unwrap(EmbeddingTokens(*engine_, "One text.")).size());
  const Json two = Post("/api/embed", {{"input", {"One text.", "b"}}})->json();
  EXPECT_EQ(two["embeddings"][0], one["embeddings"][0]);
  EXPECT_EQ(two["embeddings"].size(), 2u);
  const Json old = Post("/api/embeddings", {{"prompt", "One text."}})->json();
  EXPECT_EQ(old["embedding"], one["embeddings"][0]);
  // Clients load the model so.
  EXPECT_EQ(Post("/api/embed", {{"model", "tiny"}})->json()["embeddings"], Json::array());
  EXPECT_EQ(Post("/api/embeddings", {{"prompt", ""}})->json()["embedding"], Json::array());
}

TEST_F(EmbeddingsPathTest, OllamaCutsLongTextsOff) {
  const std::string text(kContextTokens * 8, '~');
  std::vector<int32_t> tokens = Unwrap(EmbeddingTokens(*engine_, text, /*truncates=*/true));
  EXPECT_EQ(tokens.size(), kContextTokens);
  const auto cut = Post("/api/embed", {{"input", text}});
  ASSERT_EQ(cut->status, 200) << cut->body;
  EXPECT_EQ(cut->json()["prompt_eval_count"], kContextTokens);
  EXPECT_EQ(cut->json()["embeddings"][0].get<Numbers>(), Expected(tokens));
  const auto refused = Post("/api/embed", {{"input", text}, {"truncate", false}});
  EXPECT_EQ(refused->status, 400);
  EXPECT_TRUE(refused->json()["error"].is_string());
}

TEST_F(EmbeddingsPathTest, EmbeddingsComeBesideAnAnswer) {
  const auto answer = BeginLongAnswer();
  EXPECT_EQ(Embed({{"input", "One text."}})["data"].size(), 1u);
  answer->Leave();
}

}  // namespace
}  // namespace cria::server
