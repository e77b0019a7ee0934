#include "cli/eval/saved_logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "llm/measure/log_sum_exp.h"
#include "support/files.h"
#include "support/random_values.h"
#include "support/temporary_directory.h"

namespace cria::cli {
namespace {

using testing::HasSubstr;

constexpr uint32_t kVocabSize = 50;

class SavedLogitsTest : public testing::Test {
 protected:
  static std::vector<float> Logits(uint64_t seed) {
    std::vector<float> logits(kVocabSize);
    support::FillNormal(seed, 0, logits);
    for (float& each : logits) each *= 3.0f;
    return logits;
  }
  // Saves the logits of a text of three tokens.
  void Save(uint32_t kept_tokens, int32_t bos) const {
    const SavedLogitsOf of = {.tokens = {7, 8, 9},
                              .bos_token_id = bos,
                              .window_tokens = 4,
                              .vocab_size = kVocabSize,
                              .kept_tokens = kept_tokens};
    auto writer = SavedLogitsWriter::Create(path_, of);
    ASSERT_TRUE(writer) << writer.error().message();
    for (size_t i = 0; i < of.num_predictions(); ++i) {
      const std::vector<float> logits = Logits(i);
      ASSERT_TRUE(writer->Add(logits, LogSumExp(logits), static_cast<float>(i) + 0.5f));
    }
    EXPECT_FALSE(std::filesystem::exists(path_));
    ASSERT_TRUE(writer->Commit());
    EXPECT_EQ(std::filesystem::file_size(path_), of.file_bytes());
  }

  support::TemporaryDirectory directory_;
  std::string path_ = directory_ / "logits";
};

TEST_F(SavedLogitsTest, HasAllProbabilitiesAsF16) {
  Save(0, 1);
  auto saved = SavedLogits::Open(path_);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->of().tokens, (std::vector<int32_t>{7, 8, 9}));
  EXPECT_EQ(saved->of().bos_token_id, 1);
  EXPECT_EQ(saved->of().window_tokens, 4u);
  for (const size_t position : {2, 0, 1}) {
    const auto row = saved->Read(position);
    ASSERT_TRUE(row);
    EXPECT_EQ(row->negative_log_likelihood, static_cast<float>(position) + 0.5f);
    EXPECT_TRUE(row->distribution.tokens.empty());
    const std::vector<float> logits = Logits(position);
    double sum = 0.0;
    for (size_t i = 0; i < kVocabSize; ++i) {
      const double stored = double{row->distribution.log_probabilities[i]};
      EXPECT_NEAR(stored, double{logits[i]} - LogSumExp(logits), 0.01);
      sum += std::exp(stored - row->distribution.log_sum);
    }
    EXPECT_NEAR(sum, 1.0, 1e-6) << "rounded probabilities are normalized";
  }
}

TEST_F(SavedLogitsTest, HasTheMostLikelyTokens) {
  Save(5, -1);
  auto saved = SavedLogits::Open(path_);
  ASSERT_TRUE(saved) << saved.error().message();
  EXPECT_EQ(saved->of().num_predictions(), 2u);
  const auto row = saved->Read(1);
  ASSERT_TRUE(row);
  const std::vector<float> logits = Logits(1);
  ASSERT_EQ(row->distribution.tokens.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const uint32_t token = row->distribution.tokens[i];
    EXPECT_EQ(std::ranges::count_if(logits, [&](float each) { return each > logits[token]; }),
              static_cast<ptrdiff_t>(i));
    EXPECT_NEAR(double{row->distribution.log_probabilities[i]},
                double{logits[token]} - LogSumExp(logits), 0.01);
  }
}

TEST_F(SavedLogitsTest, ImpossibleProbabilitiesAreStored) {
  const SavedLogitsOf of = {.tokens = {0}, .bos_token_id = 0, .window_tokens = 2, .vocab_size = 2};
  auto writer = SavedLogitsWriter::Create(path_, of);
  ASSERT_TRUE(writer);
  const std::vector<float> logits = {1.0f, -1e30f};
  ASSERT_TRUE(writer->Add(logits, LogSumExp(logits), 0.0f));
  ASSERT_TRUE(writer->Commit());
  auto saved = SavedLogits::Open(path_);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->Read(0)->distribution.log_probabilities[1], -65504.0f);
}

// Every byte of the header, cut off and changed: either it is refused, or every position is read or
// refused. Sanitizers watch.
TEST_F(SavedLogitsTest, DamagedFilesAreRefusedOrHarmless) {
  Save(5, 1);
  const std::string good = support::ReadFile(path_);
  for (size_t size = 0; size < good.size(); size += 3) {
    support::WriteFile(path_, good.substr(0, size));
    EXPECT_FALSE(SavedLogits::Open(path_)) << size;
  }
  for (size_t i = 0; i < good.size(); ++i) {
    for (const char value : {'\0', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[i] = value;
      support::WriteFile(path_, bad);
      auto saved = SavedLogits::Open(path_);
      if (!saved) continue;
      for (size_t position = 0; position < saved->of().num_predictions(); ++position) {
        const auto row = saved->Read(position);
        if (!row) continue;
        for (const uint32_t token : row->distribution.tokens)
          EXPECT_LT(token, saved->of().vocab_size);
      }
    }
  }
  support::WriteFile(path_, good + "x");
  const auto longer = SavedLogits::Open(path_);
  ASSERT_FALSE(longer);
  EXPECT_THAT(longer.error().message(), HasSubstr("wrong length"));
}

TEST_F(SavedLogitsTest, OtherFilesAreNotReplaced) {
  support::WriteFile(path_, "a letter");
  const auto writer =
      SavedLogitsWriter::Create(path_, {.tokens = {1, 2}, .window_tokens = 2, .vocab_size = 3});
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code(), ErrorCode::kUsage);
  EXPECT_EQ(support::ReadFile(path_), "a letter");
  std::filesystem::remove(path_);
  Save(0, 1);
  EXPECT_TRUE(
      SavedLogitsWriter::Create(path_, {.tokens = {1, 2}, .window_tokens = 2, .vocab_size = 3}));
}

}  // namespace
}  // namespace cria::cli
