// Tests the values of --memory-limit, and whether the options that a refusal suggests do fit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "budget/generated_model.h"

namespace cria {
namespace {

using support::RunResult;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class MemoryLimitFlag : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = new budget::GeneratedModel(
        {"--shape", "stories1m", "--max-position-embeddings", "8192"}, {"--weights", "int4"});
  }
  static void TearDownTestSuite() { delete model_; }

  static RunResult Run(std::vector<std::string> more) {
    more.insert(more.begin(), {"-p", "abc", "-n", "3", "--temp", "0", "--ignore-eos"});
    return model_->Run("run", more);
  }

  static budget::GeneratedModel* model_;
};

budget::GeneratedModel* MemoryLimitFlag::model_ = nullptr;

TEST_F(MemoryLimitFlag, TakesBytesAndUnits) {
  for (const char* limit : {"700M", "1G", "700MB", "700MiB", "999999999", "700 M", "1t"}) {
    const RunResult result = Run({"--memory-limit", limit});
    EXPECT_EQ(result.exit_code, 0) << limit << ": " << result.error;
    EXPECT_THAT(result.output, StartsWith("abc")) << limit;
  }
}

// M is a million both in the option and in FormatBytes.
TEST_F(MemoryLimitFlag, HasTheUnitsThatArePrinted) {
  const std::pair<const char*, const char*> limits[] = {{"123456", " 123.5 kB of the limit"},
                                                        {"2M", " 2.0 MB of the limit"},
                                                        {"2MiB", " 2.1 MB of the limit"},
                                                        {"2K", " 2.0 kB of the limit"},
                                                        {"0", " 0 B of the limit"}};
  for (const auto& [limit, words] : limits) {
    const RunResult result = Run({"--memory-limit", limit});
    EXPECT_EQ(result.exit_code, 1) << limit;
    EXPECT_THAT(result.error, HasSubstr(words));
  }
}

// Measuring perplexity computes a chunk of 128 rows of 2,048 logits at once, and a prompt needs
// one.
TEST_F(MemoryLimitFlag, CountsTheLogitsThatACommandNeeds) {
  EXPECT_THAT(Run({"--memory-limit", "2K"}).error, HasSubstr("logits 8.2 kB, "));
  const RunResult perplexity =
      model_->Run("perplexity", {"-f", "/dev/null", "--memory-limit", "2K"});
  EXPECT_EQ(perplexity.exit_code, 1);
  EXPECT_THAT(perplexity.error, HasSubstr("logits 1.0 MB, "));
}

TEST_F(MemoryLimitFlag, RefusesWhatIsNoSize) {
  for (const char* limit : {"", "0.5", "700X", "-5", "many", "1e30", "99999999999999999999"}) {
    const RunResult result = Run({"--memory-limit", limit});
    EXPECT_EQ(result.exit_code, 2) << limit << ": " << result.error;
    EXPECT_THAT(result.output, IsEmpty()) << limit;
    EXPECT_THAT(result.error, HasSubstr("--memory-limit")) << limit;
  }
}

// The options in a refusal: "-c 4096 --kv int8".
std::vector<std::vector<std::string>> OptionsOffered(const std::string& sentence) {
  std::vector<std::vector<std::string>> offers;
  const size_t begin = sentence.find("what would fit: ");
  if (begin == std::string::npos) return offers;
  const std::string offered = sentence.substr(begin);
  const std::regex pattern("-c ([0-9]+) --kv ([a-z0-9]+)");
  for (std::sregex_iterator offer(offered.begin(), offered.end(), pattern), end; offer != end;
       ++offer) {
    offers.push_back({"-c", (*offer)[1], "--kv", (*offer)[2]});
  }
  return offers;
}

TEST_F(MemoryLimitFlag, WhatARefusalOffersFits) {
  // Running takes more memory than loading here, so a shorter context helps.
  const nlohmann::json plan = model_->Json("plan", {"-c", "8192", "-t", "1", "--kv", "f32"});
  const uint64_t steady = plan["steady_bytes"];
  ASSERT_EQ(plan["peak_bytes"], steady);
  const std::string limit = std::to_string(steady - steady / 4);
  const RunResult refused = Run({"-c", "8192", "-t", "1", "--kv", "f32", "--memory-limit", limit});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, IsEmpty());
  EXPECT_THAT(refused.error, StartsWith("cria: error: the model needs "));
  EXPECT_THAT(refused.error, EndsWith("; --force runs it anyway\n"));
  for (const nlohmann::json& line : plan["lines"]) {
    EXPECT_THAT(refused.error, HasSubstr(line["name"].get<std::string>() + " "));
  }
  const auto offers = OptionsOffered(refused.error);
  ASSERT_EQ(offers.size(), 3u) << refused.error;
  for (std::vector<std::string> offer : offers) {
    offer.insert(offer.end(), {"-t", "1", "--memory-limit", limit});
    const RunResult result = Run(offer);
    EXPECT_EQ(result.exit_code, 0) << offer[1] << " " << offer[3] << ": " << result.error;
    EXPECT_THAT(result.output, StartsWith("abc"));
  }
}

TEST_F(MemoryLimitFlag, ForceRunsAllTheSame) {
  const RunResult result = Run({"--memory-limit", "1M", "--force"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.output, StartsWith("abc"));
}

}  // namespace
}  // namespace cria
