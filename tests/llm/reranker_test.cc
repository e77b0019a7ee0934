// Scores of documents against the formula of Qwen3-Reranker's model card, by the reference decoder.

#include "llm/reranker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "llm/tiny_engine.h"
#include "llm/tiny_reranker.h"
#include "reference/reference_decoder.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

constexpr const char* kQuery = "Where does it run?";
constexpr const char* kDocuments[] = {"It runs on a small board.", "no", "",
                                      "Colours <|im_end|> of the\nrainbow {query} {document}"};

// Written out here, because the converter's own must be right.
std::string Prompt(const std::string& query, const std::string& document) {
  return "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query "
         "and the Instruct provided. Note that the answer can only be \"yes\" or "
         "\"no\".<|im_end|>\n"
         "<|im_start|>user\n<Instruct>: Given a web search query, retrieve relevant passages that "
         "answer the query\n<Query>: " +
         query + "\n<Document>: " + document +
         "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
}

std::unique_ptr<Engine> LoadReranker(const std::string& path, size_t num_sequences = 1) {
  return Unwrap(Engine::Load(path, {.num_threads = 1,
                                    .context_tokens = 1024,
                                    .num_sequences = num_sequences,
                                    .kv_type = KvType::kF32}));
}

// The softmax over the logits of the two answers.
double ReferenceScore(const TinyReranker& reranker, const std::vector<int32_t>& tokens) {
  reference::ReferenceDecoder decoder(reranker.model());
  std::vector<double> logits;
  for (const int32_t token : tokens) logits = decoder.Step(token);
  const double yes = std::exp(logits[static_cast<size_t>(reranker.yes())]);
  const double no = std::exp(logits[static_cast<size_t>(reranker.no())]);
  return yes / (yes + no);
}

// With a table that is the head, too, and with a head of its own.
TEST(Reranker, ScoresAreThoseOfTheModelCard) {
  for (const auto& make : {support::SpecQwen3, support::SpecQwen3Biases}) {
    const support::TemporaryDirectory folder;
    const TinyReranker reranker(make(), folder / "checkpoint");
    reranker.Convert(folder / "model.cria");
    const auto engine = LoadReranker(folder / "model.cria");
    ASSERT_TRUE(engine->file().reranking());
    double least = 1.0;
    double largest = 0.0;
    for (const std::string document : kDocuments) {
      const std::vector<int32_t> tokens = Unwrap(RerankTokens(*engine, kQuery, document));
      const double score = Unwrap(RerankScore(*engine, tokens));
      EXPECT_NEAR(score, ReferenceScore(reranker, tokens), 1e-5) << document;
      least = std::min(least, score);
      largest = std::max(largest, score);
    }
    EXPECT_GT(largest, least + 1e-3) << "scores that are all alike would say nothing";
  }
}

TEST(Reranker, ThePromptIsOneTextAndTheTextsNameNoControlTokens) {
  const support::TemporaryDirectory folder;
  const TinyReranker reranker(support::SpecQwen3(), folder / "checkpoint");
  reranker.Convert(folder / "model.cria");
  const auto engine = LoadReranker(folder / "model.cria");
  const Tokenizer& tokenizer = engine->tokenizer();
  for (const std::string document : {kDocuments[0], kDocuments[2]}) {
    EXPECT_EQ(Unwrap(RerankTokens(*engine, kQuery, document)),
              Unwrap(tokenizer.Encode(Prompt(kQuery, document), {.parse_special = true})));
  }
  const std::vector<int32_t> tokens = Unwrap(RerankTokens(*engine, kQuery, kDocuments[3]));
  const auto ends =
      Unwrap(tokenizer.Encode("<|im_end|>", {.add_bos = false, .parse_special = true}));
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(std::ranges::count(tokens, ends[0]), 2);
  std::string text;
  for (const int32_t token : tokens) text += tokenizer.Piece(token);
  EXPECT_THAT(text, testing::HasSubstr(kDocuments[3]));
  const auto too_long = RerankTokens(*engine, kQuery, std::string(2000, '~'));
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code(), ErrorCode::kOutOfRange);
}

TEST(Reranker, QuestionsTogetherAreAsAlone) {
  const support::TemporaryDirectory folder;
  const TinyReranker reranker(support::SpecQwen3(), folder / "checkpoint");
  reranker.Convert(folder / "model.cria");
  const auto engine = LoadReranker(folder / "model.cria", 2);
  std::vector<std::vector<int32_t>> questions;
  std::vector<double> alone;
  for (const std::string document : kDocuments) {
    questions.push_back(Unwrap(RerankTokens(*engine, kQuery, document)));
    alone.push_back(Unwrap(RerankScore(*engine, questions.back())));
  }
  std::vector<double> together(alone.size());
  {
    std::vector<std::jthread> threads;
    threads.reserve(alone.size());
    for (size_t i = 0; i < alone.size(); ++i) {
      threads.emplace_back([&, i] { together[i] = Unwrap(RerankScore(*engine, questions[i])); });
    }
  }
  EXPECT_EQ(together, alone);
  const std::atomic<bool> cancel = true;
  const auto stopped = RerankScore(*engine, questions[0], &cancel);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), ErrorCode::kCancelled);
}

TEST(Reranker, OtherModelsAreNone) {
  const TinyModelFile model(support::SpecQwen3(), 0, {.weights = Scheme::kF32});
  EXPECT_FALSE(model.Open().reranking());
}

}  // namespace
}  // namespace cria
