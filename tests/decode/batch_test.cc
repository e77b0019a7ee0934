// Several sequences in one Forward against each of them alone.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "decode/loaded_model.h"
#include "support/emulation.h"
#include "support/schemes_and_kv_types.h"
#include "xnn/row_bits.h"

namespace cria {
namespace {

constexpr size_t kSequences = 4;
constexpr size_t kBatchContext = 512;

using support::CheckpointSpec;

// The logits after each token of a sequence.
using RowsOfLogits = std::vector<std::vector<float>>;

// A sequence of a batch, and what is left of its text.
struct Text {
  SequenceId sequence;
  std::vector<int32_t> ids;
  size_t done = 0;
  RowsOfLogits logits;
};

void RunInOneBatch(Decoder& decoder, std::vector<Text>& texts, const std::vector<size_t>& counts) {
  std::vector<int32_t> tokens;
  std::vector<BatchRun> runs;
  for (size_t i = 0; i < texts.size(); ++i) {
    Text& text = texts[i];
    const size_t count = std::min(counts[i], text.ids.size() - text.done);
    if (count == 0) continue;
    tokens.insert(tokens.end(), text.ids.begin() + static_cast<ptrdiff_t>(text.done),
                  text.ids.begin() + static_cast<ptrdiff_t>(text.done + count));
    runs.push_back({text.sequence, text.done, count, count});
  }
  if (runs.empty()) return;
  Unwrap(decoder.Forward({tokens, runs}));
  size_t row = 0;
  for (const BatchRun& done : runs) {
    Text& text = *std::ranges::find(texts, done.sequence, &Text::sequence);
    text.done += done.num_tokens;
    for (size_t i = 0; i < done.num_logits; ++i) {
      const auto logits = Unwrap(decoder.Logits(row++));
      text.logits.emplace_back(logits.begin(), logits.end());
    }
  }
}

struct BatchCase {
  const char* name;
  CheckpointSpec (*spec)();  // Null: the mixture of support::WideMixture.
  ConvertOptions conversion;
  KvType kv_type;
};

CheckpointSpec LongSpec(CheckpointSpec spec) {
  spec.config.max_position_embeddings = kBatchContext;
  return spec;
}

class BatchTest : public testing::TestWithParam<BatchCase> {
 protected:
  BatchTest() : converted_(Convert()), vocab_size_(converted_->Open().config().vocab_size) {}

  static std::shared_ptr<const ConvertedModel> Convert() {
    const BatchCase& param = GetParam();
    if (param.spec == nullptr) {
      return std::make_shared<const ConvertedModel>(support::WideMixture(), param.conversion);
    }
    return std::make_shared<const ConvertedModel>(support::MakeModel(LongSpec(param.spec())),
                                                  param.conversion);
  }

  static bool IsSlowMixture() { return GetParam().spec == nullptr && support::IsEmulated(); }

  // All of the context is free.
  LoadedModel Load(size_t num_sequences, size_t threads = support::UsualThreads()) const {
    LoadedModel loaded(converted_,
                       {.context_tokens = kBatchContext,
                        .chunk_tokens = 64,
                        .kv_type = GetParam().kv_type,
                        .num_sequences = num_sequences},
                       threads, threads);
    loaded.CloseSequence();
    return loaded;
  }

  std::vector<Text> MakeTexts(Decoder& decoder, size_t count) const {
    std::vector<Text> texts;
    texts.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      Text text = {.sequence = Unwrap(decoder.sequences().Open())};
      text.ids = SomeIds(70 + 13 * i, vocab_size_);
      std::ranges::rotate(text.ids, text.ids.begin() + static_cast<ptrdiff_t>(5 * i));
      texts.push_back(std::move(text));
    }
    return texts;
  }

  // The same, each token by itself.
  RowsOfLogits Alone(const std::vector<int32_t>& ids) const {
    LoadedModel loaded = Load(1);
    std::vector<Text> texts = {{Unwrap(loaded.decoder().sequences().Open()), ids}};
    while (texts[0].done < ids.size()) RunInOneBatch(loaded.decoder(), texts, {1});
    return texts[0].logits;
  }

  // Where the products are the same, so are the logits; elsewhere, they round differently.
  void ExpectAgreement(const RowsOfLogits& rows, const RowsOfLogits& expected) const {
    ASSERT_EQ(rows.size(), expected.size());
    const Scheme weights = GetParam().conversion.weights;
    const bool is_f32 = weights == Scheme::kF32;
    const Scheme head = GetParam().conversion.head.value_or(is_f32 ? weights : Scheme::kQc8w);
    const bool is_bitwise = xnn::RowsAreBitwiseAsAlone(weights) && xnn::RowsAreBitwiseAsAlone(head);
    float largest = 0.0f;
    for (const auto& row : expected) largest = std::max(largest, LargestMagnitude(row));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (is_bitwise) {
        ASSERT_EQ(rows[i], expected[i]) << "position " << i;
      } else {
        ASSERT_LE(LargestDifference(rows[i], expected[i]), 1e-4f * largest) << "position " << i;
      }
    }
  }

  // Some of the rows that a Forward of all logits gives.
  void ExpectSome(Decoder& decoder, const RowsOfLogits& all,
                  const std::vector<size_t>& rows) const {
    RowsOfLogits some;
    RowsOfLogits expected;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto logits = Unwrap(decoder.Logits(i));
      some.emplace_back(logits.begin(), logits.end());
      expected.push_back(all[rows[i]]);
    }
    EXPECT_FALSE(decoder.Logits(rows.size()));
    ExpectAgreement(some, expected);
  }

  std::shared_ptr<const ConvertedModel> converted_;
  size_t vocab_size_;
};

// Rows without logits end before the others, in the last layer.
TEST_P(BatchTest, LogitsAreTheSameWhicheverRowsHaveSome) {
  LoadedModel loaded = Load(3);
  Decoder& decoder = loaded.decoder();
  const std::vector<int32_t> tokens = SomeIds(25, vocab_size_);
  std::vector<BatchRun> runs;
  for (const size_t count : {8, 7, 10}) {
    runs.push_back({Unwrap(decoder.sequences().Open()), 0, count, count});
  }
  const auto forward = [&](const std::vector<size_t>& num_logits) {
    for (size_t i = 0; i < runs.size(); ++i) runs[i].num_logits = num_logits[i];
    Unwrap(decoder.Forward({tokens, runs}));
  };
  forward({8, 7, 10});
  RowsOfLogits all;
  for (size_t row = 0; row < tokens.size(); ++row) {
    const auto logits = Unwrap(decoder.Logits(row));
    all.emplace_back(logits.begin(), logits.end());
  }
  forward({0, 0, 0});
  ExpectSome(decoder, all, {});
  forward({0, 2, 0});
  ExpectSome(decoder, all, {13, 14});
  forward({8, 0, 1});
  ExpectSome(decoder, all, {0, 1, 2, 3, 4, 5, 6, 7, 24});
  forward({1, 7, 3});
  ExpectSome(decoder, all, {7, 8, 9, 10, 11, 12, 13, 14, 22, 23, 24});
  // Rows that ended have left keys and values for later ones.
  forward({0, 0, 0});
  const BatchRun next = {runs[1].sequence, 6, 1, 1};
  Unwrap(decoder.Forward({std::span(tokens).subspan(14, 1), std::span(&next, 1)}));
  ExpectSome(decoder, all, {14});
}

TEST_P(BatchTest, EachSequenceIsAsAlone) {
  LoadedModel loaded = Load(kSequences);
  std::vector<Text> texts = MakeTexts(loaded.decoder(), kSequences);
  std::mt19937 random(1);
  // Single tokens, chunks that take the kernel for many rows, and sequences that pause.
  const auto any_done = [&] {
    return std::ranges::any_of(texts, [](const Text& text) { return text.done < text.ids.size(); });
  };
  while (any_done()) {
    std::vector<size_t> counts(kSequences);
    for (size_t& count : counts) count = std::array<size_t, 5>{0, 1, 1, 5, 14}[random() % 5];
    RunInOneBatch(loaded.decoder(), texts, counts);
  }
  for (const Text& text : texts) ExpectAgreement(text.logits, Alone(text.ids));
}

TEST_P(BatchTest, ThreadsDoNotChangeABatch) {
  if (IsSlowMixture())
    GTEST_SKIP() << "an emulator takes long, and threads divide other models alike";
  std::vector<std::vector<Text>> runs;
  runs.reserve(2);
  for (const size_t threads : {1, 3}) {
    LoadedModel loaded = Load(kSequences, threads);
    runs.push_back(MakeTexts(loaded.decoder(), kSequences));
    for (size_t step = 0; step < 8; ++step) {
      RunInOneBatch(loaded.decoder(), runs.back(), {1, 7, 20, step % 3});
    }
  }
  for (size_t i = 0; i < kSequences; ++i) EXPECT_EQ(runs[0][i].logits, runs[1][i].logits) << i;
}

// Pages that two sequences hold are the same bytes, and neither sees what the other one adds.
TEST_P(BatchTest, SharedPagesAreReadByBothAndWrittenByNone) {
  if (IsSlowMixture()) GTEST_SKIP() << "an emulator takes long, and other models share pages alike";
  LoadedModel loaded = Load(2);
  Decoder& decoder = loaded.decoder();
  std::vector<Text> texts = MakeTexts(decoder, 1);
  texts.reserve(2);
  Text& first = texts[0];
  first.ids = SomeIds(150, vocab_size_);
  RunInOneBatch(decoder, texts, {64});
  RunInOneBatch(decoder, texts, {64});
  Text second = {.sequence = Unwrap(decoder.sequences().Open()), .ids = first.ids, .done = 100};
  std::ranges::reverse(second.ids.begin() + 100, second.ids.end());
  ASSERT_TRUE(decoder.sequences().Share(first.sequence, second.sequence, 100));
  ASSERT_TRUE(decoder.CarryOutMoves());
  const auto table = [&](const Text& text) {
    return decoder.sequences().pages().Table(text.sequence).pages;
  };
  EXPECT_EQ(table(first)[0], table(second)[0]);
  EXPECT_EQ(decoder.sequences().pages().num_holders(table(first)[0]), 2u);
  EXPECT_NE(table(first)[1], table(second)[1]);
  texts.push_back(second);
  while (texts[0].done < 150 || texts[1].done < 150) RunInOneBatch(decoder, texts, {1, 3});
  const RowsOfLogits expected = Alone(second.ids);
  ExpectAgreement(texts[1].logits, {expected.begin() + 100, expected.end()});
  ExpectAgreement(texts[0].logits, Alone(first.ids));
}

std::vector<BatchCase> BatchCases() {
  const ConvertOptions int4 = {.weights = Scheme::kQb4w};
  std::vector<BatchCase> cases = {
      {"F32", support::SpecGqa, {.weights = Scheme::kF32}, KvType::kF32},
      {"F16", support::SpecGqa, {.weights = Scheme::kF32}, KvType::kF16},
      {"Int8", support::SpecGqa, {.weights = Scheme::kQc8w}, KvType::kInt8},
      {"Int4", support::SpecGqa, int4, KvType::kInt8},
      {"Int4Head",
       support::SpecGqa,
       {.weights = Scheme::kQb4w, .head = Scheme::kQb4w},
       KvType::kF32},
      {"Windows", support::SpecMinistral, {.weights = Scheme::kF32}, KvType::kF32},
      {"MixtureInt4", nullptr, int4, KvType::kInt8}};
  if (!support::IsEmulated()) {
    cases.push_back({"MixtureF32", nullptr, {.weights = Scheme::kF32}, KvType::kF32});
    cases.push_back({"MixtureInt8", nullptr, {.weights = Scheme::kQc8w}, KvType::kInt8});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, BatchTest, testing::ValuesIn(BatchCases()),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Batch, RefusesWhatIsNoBatch) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kF32},
                     {.context_tokens = 128, .chunk_tokens = 8, .num_sequences = 2}, 1);
  Decoder& decoder = loaded.decoder();
  loaded.CloseSequence();
  ASSERT_EQ(Unwrap(decoder.sequences().Open()), 0u);
  const SequenceId other = Unwrap(decoder.sequences().Open());
  const std::vector<int32_t> ids = {1, 2, 3, 4};
  const auto refused = [&](const std::vector<BatchRun>& runs, const char* sentence) {
    const Status run = decoder.Forward({ids, runs});
    ASSERT_FALSE(run) << sentence;
    EXPECT_EQ(run.error().code(), ErrorCode::kOutOfRange);
    EXPECT_THAT(run.error().message(), testing::HasSubstr(sentence));
    EXPECT_FALSE(decoder.Logits(0));
  };
  refused({}, "a batch of 4 tokens has runs of 0");
  refused({{0, 0, 3, 1}}, "a batch of 4 tokens has runs of 3");
  refused({{0, 0, 4, 1}, {other, 0, 1, 1}}, "a batch of 4 tokens has runs of 5");
  refused({{0, 0, 4, 1}, {other, 0, 0, 0}}, "0 tokens at position 0");
  refused({{0, 0, 2, 1}, {other, 0, 2, 3}}, "3 rows of logits are more than the 2 tokens");
  refused({{0, 0, 2, 1}, {other, 1, 2, 1}}, "has 0 tokens");
  refused({{0, 0, SIZE_MAX, 1}, {other, 0, 5, 1}}, "do not fit a context");
  refused({{0, 0, 1, 1}, {other, 0, 1, 1}, {0, 1, 2, 1}}, "do not fit a chunk of 8 tokens of 2");
  EXPECT_TRUE(decoder.Forward({ids, std::vector<BatchRun>{{0, 0, 2, 1}, {other, 0, 2, 1}}}));
  EXPECT_TRUE(decoder.Logits(1));
}

TEST(Batch, RefusesMoreSequencesThanFit) {
  const auto model = support::MakeModel(support::SpecGqa());
  const auto message = [&](const DecoderOptions& options) {
    try {
      LoadedModel loaded(model, {.weights = Scheme::kF32}, options, 1);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message({.context_tokens = 64, .num_sequences = 0}), testing::HasSubstr("outside 1"));
  EXPECT_THAT(message({.context_tokens = 64, .num_sequences = 257}),
              testing::HasSubstr("outside 1"));
  EXPECT_THAT(message({.context_tokens = 64, .num_sequences = 2}),
              testing::HasSubstr("a context of 64 has 1 pages"));
  EXPECT_THAT(message({.context_tokens = 128, .chunk_tokens = 1, .num_sequences = 2}),
              testing::HasSubstr("2 sequences do not fit a prefill chunk of 1"));
  EXPECT_EQ(message({.context_tokens = 128, .num_sequences = 2}), "");
}

}  // namespace
}  // namespace cria
