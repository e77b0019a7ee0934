// /v1/rerank and its other names, with a reranker and with a model that is none.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "llm/reranker.h"
#include "llm/tiny_reranker.h"
#include "server/api/api_fixture.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

class RerankPathTest : public ApiTest {
 protected:
  static void SetUpTestSuite() {
    // The file is replaced by a reranker's.
    model_ = std::make_unique<TinyModelFile>(support::SpecQwen3(), kContextTokens);
    const support::TemporaryDirectory folder;
    TinyReranker(support::SpecQwen3(), folder / "checkpoint")
        .Convert(model_->path(), /*overwrite=*/true);
  }

  double Expected(const std::string& document) {
    return Unwrap(RerankScore(*engine_, Unwrap(RerankTokens(*engine_, kQuery, document))));
  }
  Json Rerank(Json body) {
    const auto answer = Post("/v1/rerank", body);
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->json();
  }
  std::string Refusal(const Json& body) {
    const auto answer = Post("/v1/rerank", body);
    EXPECT_EQ(answer->status, 400) << answer->body;
    return answer->json()["error"]["message"];
  }

  static constexpr const char* kQuery = "Where does it run?";
  const std::vector<std::string> documents_ = {"It runs on a small board.", "Colours", "no", "yes"};
};

TEST_F(RerankPathTest, DocumentsComeInTheOrderOfTheirScores) {
  const Json body = {{"model", "any"}, {"query", kQuery}, {"documents", documents_}};
  const Json answer = Rerank(body);
  EXPECT_EQ(answer["model"], "tiny");
  EXPECT_EQ(answer["object"], "list");
  ASSERT_EQ(answer["results"].size(), documents_.size());
  std::vector<size_t> indices;
  double last = 1.0;
  size_t num_tokens = 0;
  for (const Json& result : answer["results"]) {
    indices.push_back(result["index"]);
    const double score = result["relevance_score"];
    EXPECT_EQ(score, Expected(documents_[indices.back()]));
    EXPECT_LE(score, last);
    EXPECT_FALSE(result.contains("document"));
    last = score;
    num_tokens += Unwrap(RerankTokens(*engine_, kQuery, documents_[indices.back()])).size();
  }
  EXPECT_THAT(indices, testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_EQ(answer["usage"], (Json{{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}));
  for (const char* const path : {"/rerank", "/v1/reranking", "/reranking"}) {
    EXPECT_EQ(Post(path, body)->json(), answer) << path;
  }
}

TEST_F(RerankPathTest, FormsOfJinaAndCohere) {
  Json body = {{"query", kQuery}, {"documents", documents_}, {"return_documents", true}};
  const Json all = Rerank(body)["results"];
  for (const Json& result : all) {
    EXPECT_EQ(result["document"], (Json{{"text", documents_[result["index"]]}}));
  }
  body["documents"] = Json::array();
  for (const std::string& document : documents_) body["documents"].push_back({{"text", document}});
  EXPECT_EQ(Rerank(body)["results"], all);
  body["top_n"] = 2;
  const Json two = Rerank(body)["results"];
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0], all[0]);
  EXPECT_EQ(two[1], all[1]);
  body["top_n"] = 0;
  EXPECT_EQ(Rerank(body)["results"], Json::array());
  body["top_n"] = 100;
  EXPECT_EQ(Rerank(body)["results"].size(), documents_.size());
}

TEST_F(RerankPathTest, WhatIsWrongIsNamed) {
  EXPECT_EQ(Refusal({{"documents", {"a"}}}), "query is missing");
  EXPECT_EQ(Refusal({{"query", "a"}}), "documents is missing");
  EXPECT_EQ(Refusal({{"query", "a"}, {"documents", Json::array()}}), "documents is an empty list");
  EXPECT_THAT(Refusal({{"query", "a"}, {"documents", "b"}}), HasSubstr("documents"));
  EXPECT_THAT(Refusal({{"query", "a"}, {"documents", Json::array({7})}}),
              HasSubstr("documents[0] is neither"));
  EXPECT_THAT(Refusal({{"query", "a"}, {"documents", Json::array({Json::object()})}}),
              HasSubstr("documents[0].text is missing"));
  EXPECT_THAT(Refusal({{"query", "a"}, {"documents", std::vector<std::string>(2049, "a")}}),
              HasSubstr("more than 2048 texts"));
  EXPECT_THAT(Refusal({{"query", "a"}, {"documents", {"a"}}, {"top_n", -1}}), HasSubstr("top_n"));
  EXPECT_THAT(Refusal({{"query", "a"}, {"documents", {"a"}}, {"max_tokens_per_doc", 5}}),
              HasSubstr("max_tokens_per_doc"));
  const auto long_one =
      Post("/v1/rerank", {{"query", "a"}, {"documents", {"a", std::string(9000, '~')}}});
  EXPECT_EQ(long_one->status, 400);
  EXPECT_EQ(long_one->json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(long_one->json()["error"]["param"], "documents[1]");
}

class NoRerankerTest : public ApiTest {};

TEST_F(NoRerankerTest, OtherModelsSaySo) {
  const auto answer = Post("/v1/rerank", {{"query", "a"}, {"documents", {"b"}}});
  EXPECT_EQ(answer->status, 400);
  EXPECT_THAT(answer->json()["error"]["message"].get<std::string>(),
              HasSubstr("does not rank documents"));
}

}  // namespace
}  // namespace cria::server
