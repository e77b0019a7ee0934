// /infill, and suffix of /v1/completions and /api/generate, with a vocabulary that has tokens for
// the middle of a text, and without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "server/api/api_fixture.h"
#include "server/api/infill.h"
#include "support/convert_model.h"
#include "support/files.h"

namespace cria::server {
namespace {

using testing::HasSubstr;

// A tiny model's file, whose special tokens of roles have the names of tokens for the middle.
void WriteInfillModel(const std::filesystem::path& folder, const std::filesystem::path& model) {
  support::WriteFamilyDirectory(LongFamily("Granite", 512), folder);
  std::string tokenizer = support::ReadFile(folder / "tokenizer.json");
  const std::vector<std::pair<std::string, std::string>> names = {
      {"<|start_header_id|>", "<|fim_prefix|>"},
      {"<|end_header_id|>", "<|fim_suffix|>"},
      {"<|im_start|>", "<|fim_middle|>"}};
  for (const auto& [from, to] : names) {
    const size_t at = tokenizer.find(from);
    ASSERT_NE(at, tokenizer.npos);
    tokenizer.replace(at, from.size(), to);
  }
  support::WriteFile(folder / "tokenizer.json", tokenizer);
  support::ConvertModel(folder, model, {.weights = Scheme::kQc8w});
}

class InfillPathsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<support::TemporaryDirectory>();
    WriteInfillModel(*folder_ / "checkpoint", *folder_ / "model.cria");
  }
  static void TearDownTestSuite() { folder_.reset(); }
  ~InfillPathsTest() override { work_.Close(std::chrono::milliseconds(0)); }

  // Tokens are drawn almost evenly, and the same ones for each request: the likeliest token of a
  // random model is the last one, here a mark at which the answer ends.
  std::shared_ptr<RecordedAnswer> Post(const std::string& path, Json body) {
    Json& fields = path.starts_with("/api/") ? body["options"] : body;
    fields.update({{"temperature", 1000}, {"top_k", 0}, {"top_p", 1}, {"min_p", 0}, {"seed", 7}});
    auto answer = std::make_shared<RecordedAnswer>();
    api_.Handle({.method = "POST", .path = path, .body = Written(body)}, answer);
    answer->AwaitEnd();
    return answer;
  }
  // The prompt that has to be in front of the middle.
  std::vector<int32_t> Prompt(const InfillText& text) {
    const auto marks = FindInfillTokens(engine_->tokenizer().vocabulary());
    EXPECT_TRUE(marks);
    return EncodeInfill(engine_->tokenizer(), *marks, text, 256);
  }
  // What the model writes behind these tokens.
  std::string Behind(const std::vector<int32_t>& prompt) {
    const Json json = Post("/completion", {{"prompt", prompt}, {"n_predict", 8}})->json();
    EXPECT_NE(json["content"], "");
    return json["content"];
  }

  static std::unique_ptr<support::TemporaryDirectory> folder_;
  std::unique_ptr<Engine> engine_ = Unwrap(Engine::Load(
      *folder_ / "model.cria", {.num_threads = 1, .context_tokens = 512, .max_constraints = 1}));
  WorkQueue work_ = WorkQueue(1, 8);
  std::unique_ptr<ModelStore> models_ = OneModel(*engine_, "tiny");
  Api api_ = Api(*models_, work_, {.version = "1.2.3"});
};

std::unique_ptr<support::TemporaryDirectory> InfillPathsTest::folder_;

TEST_F(InfillPathsTest, WritesTheMiddleFromPrefixAndSuffix) {
  const std::vector<int32_t> prompt =
      Prompt({.prefix = "int a", .suffix = "return", .prompt = "= 1"});
  Json request = {
      {"input_prefix", "int a"}, {"input_suffix", "return"}, {"prompt", "= 1"}, {"n_predict", 8}};
  const auto answer = Post("/infill", request);
  ASSERT_EQ(answer->status, 200) << answer->body;
  const Json json = answer->json();
  EXPECT_EQ(json["content"], Behind(prompt));
  EXPECT_EQ(json["tokens_evaluated"], prompt.size());
  request["stream"] = true;
  std::string streamed;
  std::istringstream lines(Post("/infill", request)->body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("data: {")) {
      streamed += Json::parse(line.substr(6))["content"].get<std::string>();
    }
  }
  EXPECT_EQ(json["content"], streamed);
}

TEST_F(InfillPathsTest, TellsTheModelOfOtherFiles) {
  const std::vector<int32_t> prompt =
      Prompt({.prefix = "a", .suffix = "b", .extras = {{"tmp", "one"}, {"f.h", "two"}}});
  const Json extras = Json::array({{{"text", "one"}}, {{"text", "two"}, {"filename", "f.h"}}});
  const Json json =
      Post(
          "/infill",
          {{"input_prefix", "a"}, {"input_suffix", "b"}, {"input_extra", extras}, {"n_predict", 8}})
          ->json();
  EXPECT_EQ(json["tokens_evaluated"], prompt.size());
  EXPECT_EQ(json["content"], Behind(prompt));
}

TEST_F(InfillPathsTest, SuffixOfOtherApisIsTheSame) {
  const std::string middle = Behind(Prompt({.prefix = "int a", .suffix = "return"}));
  const Json completion =
      Post("/v1/completions", {{"prompt", "int a"}, {"suffix", "return"}, {"max_tokens", 8}})
          ->json();
  EXPECT_EQ(completion["choices"][0]["text"], middle);
  const Json generated = Post("/api/generate", {{"prompt", "int a"},
                                                {"suffix", "return"},
                                                {"stream", false},
                                                {"options", {{"num_predict", 8}}}})
                             ->json();
  EXPECT_EQ(generated["response"], middle);
}

TEST_F(InfillPathsTest, KeepsWhatIsNearTheMiddleOfATextThatIsTooLong) {
  const std::string text(20'000, '~');
  const auto answer =
      Post("/infill", {{"input_prefix", text}, {"input_suffix", text}, {"n_predict", 8}});
  ASSERT_EQ(answer->status, 200) << answer->body;
  EXPECT_LE(answer->json()["tokens_evaluated"].get<size_t>(), 512 - 8);
  EXPECT_GT(answer->json()["tokens_evaluated"].get<size_t>(), 400);
}

TEST_F(InfillPathsTest, ASuffixGoesWithoutASystemMessage) {
  const Json request = {
      {"prompt", "a"}, {"suffix", "b"}, {"system", "c"}, {"options", Json::object()}};
  EXPECT_THAT(Post("/api/generate", request)->json()["error"].get<std::string>(),
              HasSubstr("system is not supported together with suffix"));
}

using NoInfillTest = ApiTest;

TEST_F(NoInfillTest, AVocabularyWithoutTheTokensIsNamedAsTheReason) {
  const auto infill = Post("/infill", {{"input_prefix", "a"}, {"input_suffix", "b"}});
  EXPECT_EQ(infill->status, 400);
  EXPECT_EQ(infill->json()["error"]["param"], "input_suffix");
  EXPECT_THAT(infill->json()["error"]["message"].get<std::string>(),
              HasSubstr("no tokens for the middle of a text"));
  const auto completion = Post("/v1/completions", {{"prompt", "a"}, {"suffix", "b"}});
  EXPECT_EQ(completion->status, 400);
  EXPECT_EQ(completion->json()["error"]["param"], "suffix");
  const auto generated = Post("/api/generate", {{"prompt", "a"}, {"suffix", "b"}});
  EXPECT_EQ(generated->status, 400);
  EXPECT_THAT(generated->json()["error"].get<std::string>(), HasSubstr("suffix"));
}

}  // namespace
}  // namespace cria::server
