// POST /v1/rerank, in the form of Jina's and Cohere's requests

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/format.h"
#include "llm/reranker.h"
#include "server/api/paths.h"
#include "server/api/shared_steps.h"
#include "server/api/text_answer.h"
#include "server/requests/fields.h"
#include "server/requests/json_bounds.h"
#include "server/requests/request_error.h"
#include "server/requests/unsupported_fields.h"

namespace cria::server {
namespace {

struct RerankRequest {
  std::string query;
  std::vector<std::string> documents;
  size_t top_n = SIZE_MAX;
  bool returns_documents = false;
};

std::string ReadDocument(const Json& document, const std::string& path) {
  if (document.is_string()) return document.get<std::string>();
  if (!document.is_object()) RefuseField(path, "is neither a text nor an object with a text");
  return Fields(document, path).RequiredString("text");
}

std::vector<std::string> ReadDocuments(const Fields& request) {
  const Json* const list = request.List("documents");
  if (list == nullptr) RefuseField("documents", "is missing");
  if (list->empty()) RefuseField("documents", "is an empty list");
  if (list->size() > kMaxEmbeddingInputs) {
    RefuseField("documents", Format("has more than {} texts", kMaxEmbeddingInputs));
  }
  std::vector<std::string> documents;
  documents.reserve(list->size());
  for (size_t i = 0; i < list->size(); ++i) {
    documents.push_back(ReadDocument((*list)[i], Format("documents[{}]", i)));
  }
  return documents;
}

RerankRequest ReadRerank(Exchange& exchange) {
  if (!exchange.model().engine.file().reranking()) {
    throw RequestError(400,
                       "this model does not rank documents: it is no reranker, as "
                       "Qwen3-Reranker is",
                       "model", "not_supported");
  }
  const Json body = TakeBody(exchange);
  const Fields fields(body);
  RefuseUnsupportedInRerank(fields);
  static_cast<void>(fields.String("model"));
  RerankRequest request;
  request.query = fields.RequiredString("query");
  request.documents = ReadDocuments(fields);
  request.top_n = static_cast<size_t>(fields.Integer("top_n", 0).value_or(kMaxEmbeddingInputs));
  request.returns_documents = fields.Bool("return_documents").value_or(false);
  return request;
}

// The questions of all documents. A document whose text is not returned is freed.
std::vector<std::vector<int32_t>> EncodeQuestions(const Engine& engine, RerankRequest& request) {
  std::vector<std::vector<int32_t>> questions;
  questions.reserve(request.documents.size());
  size_t num_tokens = 0;
  for (std::string& document : request.documents) {
    const std::string path = Format("documents[{}]", questions.size());
    questions.push_back(ValueOf(RerankTokens(engine, request.query, document), path));
    questions.back().shrink_to_fit();
    if (!request.returns_documents) document = {};
    num_tokens += questions.back().size();
    if (num_tokens > std::max(kMaxEmbeddingTokens, engine.decoder().context_tokens())) {
      RefuseField("documents", Format("has texts with more than {} tokens together, with the query "
                                      "and the prompt of each",
                                      kMaxEmbeddingTokens));
    }
  }
  return questions;
}

std::vector<double> ScoreAll(Exchange& exchange, const std::vector<std::vector<int32_t>>& questions,
                             const std::atomic<bool>& gone) {
  std::vector<double> scores(questions.size());
  const auto score = [&](size_t i) -> Status {
    CRIA_ASSIGN_OR_RETURN(scores[i], RerankScore(exchange.model().engine, questions[i], &gone));
    return {};
  };
  ThrowIfError(RunShared(exchange.state.work, questions.size(), score), "documents");
  return scores;
}

void SendRanking(const std::string& model_name, const RerankRequest& request,
                 const std::vector<double>& scores, size_t num_tokens, Response& response) {
  std::vector<size_t> ranking(scores.size());
  std::iota(ranking.begin(), ranking.end(), size_t{0});
  std::ranges::stable_sort(ranking, std::ranges::greater(), [&](size_t i) { return scores[i]; });
  ranking.resize(std::min(ranking.size(), request.top_n));
  TextAnswer text(response);
  text.Add("{" +
           TextAnswer::Members(
               {{"model", model_name},
                {"object", "list"},
                {"usage", {{"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}}}}) +
           R"(,"results":[)");
  for (const size_t i : ranking) {
    Json result = {{"index", i}, {"relevance_score", scores[i]}};
    if (request.returns_documents) result["document"] = {{"text", request.documents[i]}};
    text.Add((i == ranking.front() ? "" : ",") + Written(result));
  }
  text.Add("]}");
  text.Finish();
}

}  // namespace

void HandleRerank(Exchange& exchange) {
  RerankRequest request = ReadRerank(exchange);
  Submit(exchange, [&](Response& response) {
    const auto begin = std::chrono::steady_clock::now();
    ServedModel& model = exchange.model();
    const auto questions = EncodeQuestions(model.engine, request);
    // Texts that are returned are a part of the large request until the end.
    if (!request.returns_documents) response.EndTurn();
    const std::vector<double> scores = ScoreAll(exchange, questions, response.gone());
    AnswerEnd end = {.reason = FinishReason::kStop};
    for (const auto& question : questions) end.prompt_tokens += question.size();
    end.prompt_time = std::chrono::steady_clock::now() - begin;
    model.metrics.Add(end);
    SendRanking(model.name, request, scores, end.prompt_tokens, response);
  });
}

}  // namespace cria::server
