// The logits after several tokens of a prompt.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decode/loaded_model.h"
#include "support/emulation.h"

namespace cria {
namespace {

// The logits after the last `count` tokens of a prompt, with products of `max_rows` rows.
class LogitRows : public testing::TestWithParam<ConvertOptions> {
 protected:
  static constexpr size_t kTokens = 30;

  LogitRows()
      : model_(support::MakeModel(support::SpecGqa())),
        ids_(SomeIds(kTokens, model_.config.vocab_size)),
        converted_(std::make_shared<const ConvertedModel>(model_, GetParam())) {}

  LoadedModel Load(size_t max_rows, size_t threads = support::UsualThreads()) const {
    return {converted_, {.context_tokens = kContext, .max_logit_rows = max_rows}, threads, threads};
  }

  std::vector<float> Row(Decoder& decoder, size_t row) const {
    const auto logits = Unwrap(decoder.Logits(row));
    EXPECT_EQ(logits.size(), model_.config.vocab_size);
    return {logits.begin(), logits.end()};
  }

  std::vector<float> Rows(LoadedModel& loaded, size_t count) const {
    Unwrap(loaded.Forward(ids_, 0, count));
    std::vector<float> all;
    for (size_t row = 0; row < count; ++row) {
      const std::vector<float> logits = Row(loaded.decoder(), row);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  reference::ReferenceModel model_;
  std::vector<int32_t> ids_;
  std::shared_ptr<const ConvertedModel> converted_;
};

TEST_P(LogitRows, OfOneProductAreThoseOfSeveral) {
  LoadedModel one_row = Load(1);
  const std::vector<float> expected = Rows(one_row, kTokens);
  // XNNPACK's product of one row may round differently from that of many.
  const float tolerance = 1e-4f * LargestMagnitude(expected);
  for (const size_t max_rows : {2, 7, 14, 29, 30, 64}) {
    LoadedModel loaded = Load(max_rows);
    for (const size_t count : {size_t{1}, size_t{2}, size_t{17}, kTokens}) {
      const std::vector<float> rows = Rows(loaded, count);
      const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(rows.size()),
                                    expected.end());
      EXPECT_LE(LargestDifference(rows, last), tolerance) << count << " by " << max_rows;
    }
    // Products of the same rows give the same bits.
    LoadedModel other_threads = Load(max_rows, 3);
    EXPECT_EQ(Rows(loaded, kTokens), Rows(other_threads, kTokens)) << max_rows;
  }
}

TEST_P(LogitRows, MayBeAskedForInAnyOrder) {
  LoadedModel one_row = Load(1);
  const std::vector<float> expected = Rows(one_row, kTokens);
  const float tolerance = 1e-4f * LargestMagnitude(expected);
  LoadedModel loaded = Load(4);
  constexpr size_t kRows = 11;
  ASSERT_TRUE(loaded.Forward(ids_, 0, kRows));
  for (const size_t row : {10, 0, 3, 2, 1, 5, 9, 9, 4, 7, 8, 6, 0}) {
    const size_t vocab_size = model_.config.vocab_size;
    const auto begin =
        expected.begin() + static_cast<ptrdiff_t>((kTokens - kRows + row) * vocab_size);
    EXPECT_LE(LargestDifference(Row(loaded.decoder(), row),
                                {begin, begin + static_cast<ptrdiff_t>(vocab_size)}),
              tolerance)
        << row;
  }
}

TEST_P(LogitRows, OfOneProductStayWhileOthersAreAskedFor) {
  constexpr size_t kMaxRows = 4;
  LoadedModel loaded = Load(kMaxRows);
  Decoder& decoder = loaded.decoder();
  const std::vector<float> expected = Rows(loaded, kMaxRows);
  ASSERT_TRUE(loaded.Forward(ids_, 0, kMaxRows));
  std::vector<std::span<const float>> rows;
  rows.reserve(kMaxRows);
  for (size_t row = 0; row < kMaxRows; ++row) rows.push_back(Unwrap(decoder.Logits(row)));
  std::vector<float> all;
  for (const auto row : rows) all.insert(all.end(), row.begin(), row.end());
  EXPECT_EQ(all, expected);
}

TEST_P(LogitRows, AreComputedByOneProductOnceTheyAreWanted) {
  constexpr size_t kMaxRows = 4;
  LoadedModel loaded = Load(kMaxRows, 1);
  Decoder& decoder = loaded.decoder();
  Profile profile;
  decoder.set_profile(&profile);
  const auto head_time = [&] { return profile.time(OperatorKind::kLmHead); };
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{5}, size_t{11}}) {
    const auto before = head_time();
    ASSERT_TRUE(loaded.Forward(ids_, 0, count));
    EXPECT_EQ(head_time(), before) << "a Forward alone does not need the head";
    size_t num_products = 0;
    for (size_t row = 0; row < count; ++row) {
      const auto time = head_time();
      ASSERT_TRUE(decoder.Logits(row));
      if (head_time() != time) ++num_products;
    }
    EXPECT_EQ(num_products, (count + kMaxRows - 1) / kMaxRows) << count;
  }
}

TEST_P(LogitRows, OfAnEarlierForwardAreNotKept) {
  LoadedModel loaded = Load(8);
  Decoder& decoder = loaded.decoder();
  const std::vector<float> expected = Rows(loaded, 3);
  ASSERT_TRUE(loaded.Forward(std::span(ids_).first(8), 0, 8));
  ASSERT_TRUE(decoder.Logits(0));
  EXPECT_EQ(Rows(loaded, 3), expected);
  EXPECT_FALSE(decoder.Logits(3));
  EXPECT_FALSE(loaded.Forward(std::vector<int32_t>{-1}, 0, 1));
  EXPECT_FALSE(decoder.Logits(0));
}

INSTANTIATE_TEST_SUITE_P(
    Schemes, LogitRows,
    testing::Values(ConvertOptions{.weights = Scheme::kF32},
                    ConvertOptions{.weights = Scheme::kQc8w},
                    ConvertOptions{.weights = Scheme::kQb4w, .head = Scheme::kQc8w},
                    ConvertOptions{.weights = Scheme::kQb4w, .head = Scheme::kQb4w}),
    [](const auto& param) {
      const Scheme head = param.param.head.value_or(param.param.weights);
      return std::string(SchemeName(param.param.weights)) + "_head_" +
             std::string(SchemeName(head));
    });

}  // namespace
}  // namespace cria
