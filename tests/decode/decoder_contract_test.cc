// What the decoder promises whatever kernels multiply: any type of numbers in the checkpoint, any
// number of threads, dropped positions, and refusals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "decode/decoder_of_every_kind.h"
#include "decode/layer_products.h"
#include "support/emulation.h"
#include "support/plant_channels.h"
#include "support/schemes_and_kv_types.h"

namespace cria {
namespace {

using support::CheckpointSpec;

TEST_P(DecoderOfEveryKind, HalfPrecisionIsReadExactly) {
  for (const auto storage : {support::StorageType::kBf16, support::StorageType::kF16}) {
    CheckpointSpec spec = GetParam().make();
    spec.format.storage = storage;
    const reference::ReferenceModel model = support::MakeModel(spec);
    const ConvertOptions f32 = {.weights = Scheme::kF32};
    LoadedModel loaded(std::make_shared<const ConvertedModel>(model, f32, storage),
                       {.context_tokens = kContext}, 1);
    const std::vector<float> expected = ReferenceLogits(model, ids_);
    EXPECT_LT(LargestDifference(loaded.Run(ids_, {48}), expected),
              1e-4f * LargestMagnitude(expected));
  }
}

// The same function, written with large channels. The converter evens them out; without that, the
// errors would be many times as large.
TEST_P(DecoderOfEveryKind, LargeChannelsCostLittle) {
  const std::vector<float> expected = ReferenceLogits(model_, ids_);
  reference::ReferenceModel planted = model_;
  support::PlantChannels(planted, 5);
  const auto error_of = [&](std::shared_ptr<const ConvertedModel> model) {
    LoadedModel loaded(std::move(model), {.context_tokens = 64}, support::UsualThreads());
    return RootMeanSquareDifference(loaded.Run(ids_, {48}), expected);
  };
  for (const Scheme scheme : {Scheme::kQc8w, Scheme::kQb4w}) {
    // The converter decides the same on every processor, so one scheme is enough there.
    if (support::IsEmulated() && scheme == Scheme::kQb4w) continue;
    const auto converted =
        std::make_shared<const ConvertedModel>(planted, ConvertOptions{.weights = scheme});
    EXPECT_LT(error_of(converted), 1.5f * error_of(Converted(scheme))) << SchemeName(scheme);
  }
}

TEST_P(DecoderOfEveryKind, ThreadsChangeNothing) {
  for (const auto& [scheme, kv_type] : support::SchemesAndKvTypes()) {
    const DecoderOptions options = {.context_tokens = 64, .kv_type = kv_type};
    const auto model = Converted(scheme);
    LoadedModel one(model, options, 1, 1);
    const std::vector<float> expected = one.Run(ids_, {32, 13, 1});
    for (const auto& [threads, batch_threads] :
         {std::pair<size_t, size_t>{2, 2}, {3, 3}, {1, 3}, {3, 1}}) {
      if (support::IsEmulated() && threads + batch_threads != 4) continue;
      LoadedModel several(model, options, threads, batch_threads);
      EXPECT_EQ(several.Run(ids_, {32, 13, 1}), expected)
          << threads << " threads, " << batch_threads << " for batches";
    }
  }
}

// In one layer, keys and values depend on their own token and place alone: after a drop, the cache
// is what it would be had the dropped tokens never been there.
TEST_P(DecoderOfEveryKind, DroppedPositionsLeaveNoTrace) {
  CheckpointSpec spec = GetParam().make();
  spec.config.num_hidden_layers = 1;
  if (!spec.config.layers.empty()) spec.config.layers.resize(1);
  const reference::ReferenceModel model = support::MakeModel(spec);
  const ConvertOptions f32 = {.weights = Scheme::kF32};
  const auto converted = std::make_shared<const ConvertedModel>(model, f32);
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    LoadedModel loaded(converted, {.context_tokens = 64, .kv_type = kv_type},
                       support::UsualThreads());
    std::vector<int32_t> shorter = ids_;
    shorter.erase(shorter.begin() + 5, shorter.begin() + 25);
    const std::vector<float> expected = loaded.Run(shorter, {shorter.size() - 1, 1});
    loaded.Run(ids_, {ids_.size() - 1, 1});
    ASSERT_TRUE(loaded.Drop(5, 20));
    ASSERT_TRUE(loaded.Forward(std::span(shorter).last(1), shorter.size() - 1, 1));
    EXPECT_LE(ErrorOfLogits(loaded.decoder(), expected), kv_type == KvType::kF32 ? 1e-5f : 2e-2f)
        << KvTypeName(kv_type);
  }
}

TEST_P(DecoderOfEveryKind, PositionsThatAreNotThereCannotBeDropped) {
  LoadedModel loaded(model_, {.weights = Scheme::kF32}, {.context_tokens = 64}, 1);
  loaded.Run(ids_, {ids_.size()});
  EXPECT_FALSE(loaded.Drop(40, 9));
  EXPECT_FALSE(loaded.Drop(49, 0));
  EXPECT_FALSE(loaded.Drop(1, SIZE_MAX));
  EXPECT_TRUE(loaded.Drop(48, 0));
  EXPECT_TRUE(loaded.Drop(0, 48));
  EXPECT_EQ(loaded.num_tokens(), 0u);
}

// A row's embedding takes the place of its token, whatever the token is, and the hidden state is
// what the head multiplies.
TEST_P(DecoderOfEveryKind, EmbeddingsStandForTokens) {
  LoadedModel loaded(model_, {.weights = Scheme::kF32}, {.context_tokens = 64}, 1);
  Decoder& decoder = loaded.decoder();
  const std::vector<float> expected = loaded.Run(ids_, {ids_.size()});
  const std::vector<float>& table = model_.tensors.at("model.embed_tokens.weight").values;
  std::vector<int32_t> ids = ids_;
  std::vector<const float*> embeddings(ids.size(), nullptr);
  for (size_t i = 0; i < ids.size(); i += 3) {
    embeddings[i] = &table[static_cast<size_t>(ids[i]) * decoder.hidden_size()];
    ids[i] = -1;
  }
  const BatchRun run = {
      .sequence = loaded.sequence(), .num_tokens = ids.size(), .num_logits = ids.size()};
  Unwrap(decoder.Forward({.tokens = ids, .runs = {&run, 1}, .embeddings = embeddings}));
  const auto head = model_.tensors.find("lm_head.weight");
  const std::vector<float>& rows = head == model_.tensors.end() ? table : head->second.values;
  for (size_t row = 0; row < ids.size(); ++row) {
    const std::span<float> logits = Unwrap(decoder.Logits(row));
    EXPECT_TRUE(std::ranges::equal(
        logits, std::span(expected).subspan(row * decoder.vocab_size(), decoder.vocab_size())));
    const std::vector<float> before(logits.begin(), logits.end());
    const std::span<const float> hidden = Unwrap(decoder.LastHiddenState(row));
    ASSERT_EQ(hidden.size(), decoder.hidden_size());
    const float product =
        std::inner_product(hidden.begin(), hidden.end(), rows.end() - std::ssize(hidden), 0.0f);
    EXPECT_NEAR(product, before.back(), 1e-4f * LargestMagnitude(expected));
  }
  EXPECT_FALSE(decoder.LastHiddenState(ids.size()));
  EXPECT_FALSE(decoder.Forward({.tokens = ids, .runs = {&run, 1}})) << "tokens that are none";
  EXPECT_FALSE(decoder.Forward({ids, {&run, 1}, std::span(embeddings).first(3)}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderOfEveryKind, testing::ValuesIn(support::TinySpecs()),
                         [](const auto& param) { return param.param.name; });

TEST(Decoder, RefusesPositionsAfterTheSequence) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = 8}, 1);
  const std::vector<int32_t> ids = {1, 2, 3};
  ASSERT_TRUE(loaded.Forward(ids, 0, 1));
  const Status refused = loaded.Forward(ids, 4, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("the sequence has 3 tokens"));
  EXPECT_FALSE(loaded.decoder().Logits(0));
  EXPECT_TRUE(loaded.Forward(ids, 3, 1));
  // Earlier positions forget later ones.
  EXPECT_TRUE(loaded.Forward(ids, 1, 1));
  EXPECT_EQ(loaded.num_tokens(), 4u);
}

// Up to the trained length, dynamic scaling does nothing; a longer context has frequencies of its
// own from the first position on.
TEST(Decoder, DynamicRopeDependsOnTheContext) {
  const auto model = support::MakeModel(support::SpecDynamicRope());
  reference::ReferenceModel plain = model;
  plain.config.rope_scaling = {};
  const std::vector<int32_t> ids = SomeIds(20, model.config.vocab_size);
  const std::vector<float> unscaled = ReferenceLogits(plain, ids);
  const float largest = LargestMagnitude(unscaled);
  const auto difference = [&](size_t context) {
    LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = context}, 1);
    return LargestDifference(loaded.Run(ids, {20}), unscaled);
  };
  EXPECT_LT(difference(20), 1e-4f * largest);
  EXPECT_LT(difference(32), 1e-4f * largest);
  EXPECT_GT(difference(33), 1e-3f * largest);
  EXPECT_GT(difference(128), difference(33));
  EXPECT_THROW(difference(129), std::runtime_error);
}

// Qwen2 has biases of keys that are far larger than what differs between keys.
TEST(Decoder, LargeBiasesOfKeysCostNothingInInt8) {
  const auto error_of = [](float bias) {
    reference::ReferenceModel model = support::MakeModel(support::SpecQwen2());
    support::PlantKeyBiases(model, bias);
    const std::vector<int32_t> ids = SomeIds(60, model.config.vocab_size);
    LoadedModel loaded(model, {.weights = Scheme::kF32},
                       {.context_tokens = 64, .kv_type = KvType::kInt8}, 1);
    const std::vector<float> logits = loaded.Run(ids, {40, 20});
    return RootMeanSquareDifference(logits, ReferenceLogits(model, ids));
  };
  EXPECT_LT(error_of(100.0f), 1.3f * error_of(0.0f));
}

TEST(Decoder, ProductsAloneLeaveTheCacheAsItIs) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kQb4w}, {.context_tokens = 64}, 2, 2);
  const std::vector<int32_t> ids = SomeIds(20, model.config.vocab_size);
  const std::vector<float> expected = loaded.Run(ids, {19, 1});
  Decoder& decoder = loaded.decoder();
  for (const size_t rows : {1, 20}) ASSERT_TRUE(RunLayerProducts(decoder, rows, 1));
  EXPECT_FALSE(RunLayerProducts(decoder, decoder.chunk_tokens() + 1, 1));
  ASSERT_TRUE(RunHeadProduct(decoder, 1));
  EXPECT_FALSE(RunHeadProduct(decoder, 2));
  EXPECT_FALSE(decoder.Logits(0));
  ASSERT_TRUE(loaded.Forward(std::span(ids).last(1), 19, 1));
  const auto logits = decoder.Logits(0);
  ASSERT_TRUE(logits);
  EXPECT_TRUE(std::equal(logits->rbegin(), logits->rend(), expected.rbegin()));
}

TEST(Decoder, CountsItsTimeWhereItIsAskedTo) {
  const auto dense = std::make_shared<const ConvertedModel>(support::SpecGqa(), ConvertOptions{});
  const auto mixture =
      std::make_shared<const ConvertedModel>(support::FamilyNamed("Qwen2Moe"), ConvertOptions{});
  const auto recurrent =
      std::make_shared<const ConvertedModel>(support::FamilyNamed("Lfm2"), ConvertOptions{});
  const auto per_layer =
      std::make_shared<const ConvertedModel>(support::FamilyNamed("Gemma4"), ConvertOptions{});
  for (const auto& model : {dense, mixture, recurrent, per_layer}) {
    LoadedModel loaded(model, {.context_tokens = 64}, 1);
    const std::vector<int32_t> ids = SomeIds(20, model->Open().config().vocab_size);
    Profile profile;
    loaded.Run(ids, {20});
    loaded.decoder().set_profile(&profile);
    EXPECT_EQ(profile.total().count(), 0);
    loaded.Run(ids, {20});
    loaded.decoder().set_profile(nullptr);
    const auto total = profile.total();
    loaded.Run(ids, {20});
    EXPECT_EQ(profile.total(), total);
    for (size_t i = 0; i < kNumOperatorKinds; ++i) {
      const auto kind = static_cast<OperatorKind>(i);
      const bool is_used = kind != OperatorKind::kSampling && kind != OperatorKind::kRotation &&
                           kind != OperatorKind::kMtp &&
                           (kind != OperatorKind::kRouting || model == mixture) &&
                           (kind != OperatorKind::kConvolution || model == recurrent) &&
                           (kind != OperatorKind::kPerLayer || model == per_layer);
      EXPECT_EQ(profile.time(kind).count() > 0, is_used) << OperatorKindName(kind);
    }
  }
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = 8, .chunk_tokens = 4}, 1);
  Decoder& decoder = loaded.decoder();
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  const auto code = [](const Status& status) { return status.error().code(); };
  EXPECT_EQ(code(loaded.Forward(ids, 0, 1)), ErrorCode::kOutOfRange);
  EXPECT_EQ(code(loaded.Forward({}, 0, 0)), ErrorCode::kOutOfRange);
  EXPECT_EQ(code(loaded.Forward(std::span(ids).first(4), 5, 1)), ErrorCode::kOutOfRange);
  EXPECT_EQ(code(loaded.Forward(std::span(ids).first(1), SIZE_MAX, 1)), ErrorCode::kOutOfRange);
  EXPECT_FALSE(decoder.Logits(0));
  ASSERT_TRUE(loaded.Forward(std::span(ids).first(4), 0, 0));
  for (const size_t num_logits : {size_t{5}, SIZE_MAX}) {
    const Status refused = loaded.Forward(std::span(ids).first(4), 4, num_logits);
    EXPECT_EQ(code(refused), ErrorCode::kOutOfRange);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr(std::to_string(num_logits)));
    EXPECT_FALSE(decoder.Logits(0));
  }
  for (const size_t num_logits : {0, 1, 3, 4}) {
    EXPECT_TRUE(loaded.Forward(std::span(ids).first(4), 4, num_logits));
    for (size_t row = 0; row < num_logits; ++row) EXPECT_TRUE(decoder.Logits(row)) << row;
    for (const size_t row : {num_logits, num_logits + 1, SIZE_MAX}) {
      const auto logits = decoder.Logits(row);
      ASSERT_FALSE(logits) << row << " of " << num_logits;
      EXPECT_EQ(logits.error().code(), ErrorCode::kOutOfRange);
    }
  }
}

TEST(Decoder, RefusesTokensOutsideTheVocabulary) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = 8}, 1);
  const auto vocab_size = static_cast<int32_t>(model.config.vocab_size);
  for (const int32_t id : {-1, vocab_size, INT32_MAX, INT32_MIN}) {
    const Status status = loaded.Forward(std::vector{id}, 0, 1);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message(), testing::HasSubstr(std::to_string(id)));
  }
}

TEST(Decoder, RefusesContextsItWasNotMadeFor) {
  const auto model = support::MakeModel(support::SpecGqa());
  const size_t longest = model.config.max_position_embeddings;
  EXPECT_THROW(LoadedModel(model, {}, {.context_tokens = longest + 1}, 1), std::runtime_error);
  EXPECT_THROW(LoadedModel(model, {}, {.context_tokens = 0}, 1), std::runtime_error);
}

TEST(Decoder, NeedsARowOfLogits) {
  const auto model = support::MakeModel(support::SpecGqa());
  EXPECT_THROW(LoadedModel(model, {}, {.context_tokens = 8, .max_logit_rows = 0}, 1),
               std::runtime_error);
}

}  // namespace
}  // namespace cria
