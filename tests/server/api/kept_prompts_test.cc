// Prompts are read once: what clients are told of tokens that were not computed, in tokens and not
// in seconds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "server/api/api_fixture.h"
#include "server/prompts/prompt_files.h"

namespace cria::server {
namespace {

// A server from its start to its end, with so many sequences and prompts that it keeps.
class PromptServer {
 public:
  PromptServer(const std::string& model, size_t num_sequences, size_t num_kept,
               const std::string& prompt_folder = "")
      : engine_(Unwrap(Engine::Load(model, {.num_threads = 1,
                                            .context_tokens = 4096,
                                            .num_sequences = num_sequences,
                                            .num_kept_sequences = num_kept}))),
        models_(
            OneModel(*engine_, "tiny",
                     prompt_folder.empty()
                         ? nullptr
                         : Unwrap(PromptFiles::Open(
                               {.folder = prompt_folder, .max_bytes = 100'000'000}, *engine_)))),
        work_(num_sequences, 16),
        api_(*models_, work_, {.on_changed_beginning = [this](const ChangedBeginning& change) {
          changes.push_back(change);
        }}) {}
  ~PromptServer() { work_.Close(std::chrono::milliseconds(0)); }

  std::shared_ptr<RecordedAnswer> Begin(const std::string& path, const Json& body) {
    auto answer = std::make_shared<RecordedAnswer>();
    api_.Handle({.method = body.is_null() ? "GET" : "POST",
                 .path = path,
                 .body = body.is_null() ? "" : Written(body),
                 .content_type = "application/json"},
                answer);
    return answer;
  }
  Json Answer(const std::string& path, const Json& body) {
    const auto answer = Begin(path, body);
    answer->AwaitEnd();
    EXPECT_EQ(answer->status, 200) << answer->body;
    return answer->json();
  }
  // A figure of /metrics.
  double Metric(const std::string& name) {
    const auto answer = Begin("/metrics", nullptr);
    answer->AwaitEnd();
    std::istringstream lines(answer->body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("cria_" + name + " ")) {
        return std::stod(line.substr(line.rfind(' ') + 1));
      }
    }
    ADD_FAILURE() << name;
    return -1;
  }

  std::vector<ChangedBeginning> changes;

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ModelStore> models_;
  WorkQueue work_;
  Api api_;
};

class KeptPromptsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ConvertOptions conversion = {.weights = Scheme::kQc8w};
    conversion.chat_template = ChatTemplateSource{kToolTemplate, "the test's template"};
    model_ = std::make_unique<TinyModelFile>(support::SpecGqa(), 4096, conversion);
  }
  static void TearDownTestSuite() { model_.reset(); }

  // Text of about so many words, none of which is like that of another seed.
  static std::string Words(size_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::string text;
    for (size_t i = 0; i < count; ++i) text += std::to_string(random() % 1000) + " ";
    return text;
  }
  static Json Chat(const std::string& system, const std::string& question) {
    return {{"messages", Json::array({{{"role", "system"}, {"content", system}},
                                      {{"role", "user"}, {"content", question}}})},
            {"temperature", 0},
            {"max_tokens", 2}};
  }
  struct Counts {
    size_t prompt = 0;
    size_t cached = 0;
  };
  static Counts CountsOf(const Json& answer) {
    const Json& usage = answer.at("usage");
    return {usage.at("prompt_tokens"), usage.at("prompt_tokens_details").at("cached_tokens")};
  }
  static Counts Ask(PromptServer& served, const std::string& system, const std::string& question) {
    return CountsOf(served.Answer("/v1/chat/completions", Chat(system, question)));
  }

  const std::string system_ = Words(300, 1);
  support::TemporaryDirectory folder_;
  static std::unique_ptr<TinyModelFile> model_;
};

std::unique_ptr<TinyModelFile> KeptPromptsTest::model_;

TEST_F(KeptPromptsTest, ShortRequestsLeaveALongSystemPrompt) {
  PromptServer served(model_->path(), 4, 4);
  const Counts first = Ask(served, system_, "Who?");
  EXPECT_EQ(first.cached, 0u);
  for (uint32_t i = 0; i < 4; ++i) Ask(served, Words(5, 10 + i), "What?");
  const Counts again = Ask(served, system_, "Who?");
  EXPECT_EQ(again.cached, first.prompt - 1);
}

// The reserve of prompts is there beside the only sequence, too.
TEST_F(KeptPromptsTest, OneSequenceKeepsPromptsBesides) {
  PromptServer served(model_->path(), 1, 4);
  const Counts first = Ask(served, system_, "Who?");
  for (uint32_t i = 0; i < 4; ++i) Ask(served, Words(5, 10 + i), "What?");
  EXPECT_EQ(Ask(served, system_, "Who?").cached, first.prompt - 1);
  // Without a reserve, the next request takes its place.
  PromptServer bare(model_->path(), 1, 0);
  Ask(bare, system_, "Who?");
  Ask(bare, Words(5, 10), "What?");
  EXPECT_LT(Ask(bare, system_, "Who?").cached, 64u);
}

TEST_F(KeptPromptsTest, RequestsThatComeTogetherComputeTheirPromptOnce) {
  PromptServer served(model_->path(), 4, 4);
  std::vector<std::shared_ptr<RecordedAnswer>> answers;
  for (int i = 0; i < 4; ++i) {
    answers.push_back(served.Begin("/v1/chat/completions", Chat(system_, "Who?")));
  }
  size_t prompt = 0;
  size_t computed = 0;
  for (const auto& answer : answers) {
    answer->AwaitEnd();
    const Counts counts = CountsOf(answer->json());
    prompt = counts.prompt;
    computed += counts.prompt - counts.cached;
  }
  // One who comes less than a page before the end of the reading does not wait.
  EXPECT_LE(computed, prompt + 3 * (kKvPageTokens + 1));
  EXPECT_EQ(served.Metric("prompt_tokens_total"), static_cast<double>(computed));
}

TEST_F(KeptPromptsTest, TheSecondUserOfAPromptComputesOnlyWhatIsNew) {
  PromptServer served(model_->path(), 2, 2);
  const Counts first = Ask(served, system_, "Who?");
  const Counts second = Ask(served, system_, "Where do you live, and since when?");
  EXPECT_GT(second.cached, first.prompt - 30);
  EXPECT_LT(second.prompt - second.cached, 60u);
}

TEST_F(KeptPromptsTest, AfterARestartAPromptIsReadFromTheDisk) {
  const std::string folder = folder_ / "prompts";
  Counts first;
  {
    PromptServer served(model_->path(), 2, 2, folder);
    first = Ask(served, system_, "Who?");
    EXPECT_EQ(served.Metric("kv_cache_stored_tokens_total"), 0.0);
  }
  PromptServer served(model_->path(), 2, 2, folder);
  EXPECT_EQ(served.Metric("prompt_files"), 1.0);
  const Counts again = Ask(served, system_, "Who?");
  EXPECT_EQ(again.prompt, first.prompt);
  EXPECT_EQ(again.cached, first.prompt - 1);
  EXPECT_EQ(served.Metric("prompt_files_read_total"), 1.0);
  EXPECT_EQ(served.Metric("kv_cache_stored_tokens_total"), static_cast<double>(again.cached));
  EXPECT_EQ(served.Metric("prompt_tokens_cached_total"), static_cast<double>(again.cached));
  // For ollama's clients, all tokens of a prompt count, as in ollama.
  PromptServer for_ollama(model_->path(), 2, 2, folder_ / "none");
  const Json body = {{"messages", Chat(system_, "Who?")["messages"]},
                     {"stream", false},
                     {"options", {{"num_predict", 2}, {"temperature", 0}}}};
  const Json computed = for_ollama.Answer("/api/chat", body);
  const Json read = served.Answer("/api/chat", body);
  EXPECT_EQ(computed["prompt_eval_count"], read["prompt_eval_count"]);
}

TEST_F(KeptPromptsTest, AChangeBeforeALongRestIsSaidOnceAndCounted) {
  PromptServer served(model_->path(), 2, 4);
  Ask(served, "It is 10:01. " + system_, "Who?");
  Ask(served, system_ + " It is 10:01.", "Who?");
  const size_t told = served.changes.size();
  Ask(served, "It is 10:02. " + system_, "Who?");
  Ask(served, "It is 10:03. " + system_, "Who?");
  ASSERT_EQ(served.changes.size(), 1u);
  EXPECT_LE(told, 1u);
  EXPECT_GE(served.changes.front().num_same, 256u);
  EXPECT_LE(served.changes.front().end, 40u);
  EXPECT_GE(served.Metric("prompt_tokens_repeated_total"), 2 * 256.0);
}

TEST_F(KeptPromptsTest, WhatChangesAtTheEndIsNoChange) {
  PromptServer served(model_->path(), 2, 4);
  for (const char* time : {"10:01", "10:02", "10:03"}) {
    Ask(served, system_ + " It is " + time, "Who?");
  }
  EXPECT_TRUE(served.changes.empty());
  EXPECT_EQ(served.Metric("prompt_tokens_repeated_total"), 0.0);
}

}  // namespace
}  // namespace cria::server
