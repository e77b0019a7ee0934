// The decoder against an independent float64 evaluation of the same checkpoint, and against itself:
// whole prompts, chunks, single steps and numbers of threads.

#include "decode/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "converter/convert.h"
#include "core/thread_pool.h"
#include "reference/reference_decoder.h"
#include "support/schemes_and_kv_types.h"
#include "support/temporary_directory.h"
#include "support/tiny_checkpoint.h"

namespace cria {
namespace {

using support::CheckpointSpec;

template <typename T>
T Unwrap(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

// A converted checkpoint. Tests share it if they can, because under emulation most of them take
// less time than a conversion.
class ConvertedModel {
 public:
  ConvertedModel(const reference::ReferenceModel& model, const ConvertOptions& conversion,
                 support::StorageType storage = support::StorageType::kF32) {
    support::WriteHuggingFaceDirectory(model, directory_.path() / "checkpoint",
                                       {.storage = storage});
    const auto path = directory_.path() / "model.cria";
    Unwrap(Convert(directory_.path() / "checkpoint", path, conversion));
    file_ = std::make_unique<ModelFile>(Unwrap(ModelFile::Open(path.string())));
  }

  const ModelFile& file() const { return *file_; }

 private:
  support::TemporaryDirectory directory_;
  std::unique_ptr<ModelFile> file_;
};

// A model that is loaded into memory of its own.
class LoadedModel {
 public:
  LoadedModel(std::shared_ptr<const ConvertedModel> model, const DecoderOptions& options,
              size_t num_threads, size_t num_batch_threads = 1)
      : model_(std::move(model)) {
    pool_ = std::make_unique<ThreadPool>(Unwrap(ThreadPool::Create(num_threads)));
    batch_pool_ = std::make_unique<ThreadPool>(Unwrap(ThreadPool::Create(num_batch_threads)));
    weights_ = std::make_unique<xnn::PackedWeights>(
        Unwrap(xnn::PackedWeights::PackInMemory(model_->file(), *pool_, nullptr)));
    decoder_ = Unwrap(Decoder::Create(model_->file(), *weights_, options, *pool_, *batch_pool_));
  }

  LoadedModel(const reference::ReferenceModel& model, const ConvertOptions& conversion,
              const DecoderOptions& options, size_t num_threads, size_t num_batch_threads = 1)
      : LoadedModel(std::make_shared<const ConvertedModel>(model, conversion), options, num_threads,
                    num_batch_threads) {}

  Decoder& decoder() { return *decoder_; }

  Status Drop(size_t first, size_t count) {
    CRIA_RETURN_IF_ERROR(decoder_->pages().Drop(Decoder::kSequence, first, count));
    return decoder_->Move(decoder_->pages().moves());
  }

  // The logits after each token, run in the chunks that the sizes say; the last size repeats.
  std::vector<float> Run(const std::vector<int32_t>& ids, std::vector<size_t> chunk_sizes) {
    std::vector<float> all;
    size_t position = 0;
    for (size_t i = 0; position < ids.size(); ++i) {
      const size_t wanted = chunk_sizes[std::min(i, chunk_sizes.size() - 1)];
      const size_t count = std::min(wanted, ids.size() - position);
      const Status run =
          decoder_->Forward(std::span(ids).subspan(position, count), position, count);
      if (!run) throw std::runtime_error(run.error().message());
      for (size_t row = 0; row < count; ++row) {
        const auto logits = Unwrap(decoder_->Logits(row));
        all.insert(all.end(), logits.begin(), logits.end());
      }
      position += count;
    }
    return all;
  }

 private:
  std::shared_ptr<const ConvertedModel> model_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ThreadPool> batch_pool_;
  std::unique_ptr<xnn::PackedWeights> weights_;
  std::unique_ptr<Decoder> decoder_;
};

std::vector<int32_t> SomeIds(size_t count, size_t vocab_size) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) {
    ids[i] = static_cast<int32_t>((i * i * 7 + i * 13 + 5) % vocab_size);
  }
  return ids;
}

float LargestMagnitude(const std::vector<float>& values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0.0f;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

constexpr size_t kContext = 64;

std::vector<float> ReferenceLogits(const reference::ReferenceModel& model,
                                   const std::vector<int32_t>& ids) {
  const std::vector<double> logits = reference::Logits(model, {ids.begin(), ids.end()}, kContext);
  return {logits.begin(), logits.end()};
}

class DecoderOfEveryKind : public testing::TestWithParam<support::NamedSpec> {
 protected:
  void SetUp() override {
    model_ = support::MakeModel(GetParam().make());
    ids_ = SomeIds(48, model_.config.vocab_size);
  }

  reference::ReferenceModel model_;
  std::vector<int32_t> ids_;
};

TEST_P(DecoderOfEveryKind, F32IsTheReference) {
  LoadedModel loaded(model_, {.weights = Scheme::kF32}, {.context_tokens = 64},
                     support::UsualThreads());
  const std::vector<float> expected = ReferenceLogits(model_, ids_);
  EXPECT_LT(LargestDifference(loaded.Run(ids_, {48}), expected),
            1e-4f * LargestMagnitude(expected));
}

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

// int8 rounds each weight and activation to 1/127 of its largest; int4, with blocks of 32, to about
// 1/15. These bounds are several times what the seeds give, and far below what a wrong scale, a
// swapped nibble or a shifted row would.
TEST_P(DecoderOfEveryKind, QuantizedIsNearTheReference) {
  const std::vector<float> expected = ReferenceLogits(model_, ids_);
  const float largest = LargestMagnitude(expected);
  LoadedModel int8(model_, {.weights = Scheme::kQc8w}, {.context_tokens = 64},
                   support::UsualThreads());
  EXPECT_LT(LargestDifference(int8.Run(ids_, {48}), expected), 0.10f * largest);
  LoadedModel int4(model_, {.weights = Scheme::kQb4w}, {.context_tokens = 64},
                   support::UsualThreads());
  EXPECT_LT(LargestDifference(int4.Run(ids_, {48}), expected), 0.60f * largest);
  LoadedModel all_int4(
      model_, {.weights = Scheme::kQb4w, .embedding = Scheme::kQb4w, .head = Scheme::kQb4w},
      {.context_tokens = 64}, support::UsualThreads());
  EXPECT_LT(LargestDifference(all_int4.Run(ids_, {48}), expected), 0.75f * largest);
}

TEST_P(DecoderOfEveryKind, ChunksAgreeWithOnePass) {
  for (const auto& [scheme, kv_type] : support::SchemesAndKvTypes()) {
    LoadedModel loaded(model_, {.weights = scheme}, {.context_tokens = 64, .kv_type = kv_type},
                       support::UsualThreads());
    const std::vector<float> whole = loaded.Run(ids_, {48});
    const bool exact = scheme == Scheme::kF32 && kv_type == KvType::kF32;
    const float tolerance = (exact ? 1e-4f : 2e-2f) * LargestMagnitude(whole);
    for (const std::vector<size_t>& chunks :
         std::vector<std::vector<size_t>>{{1}, {2}, {7}, {32, 1}, {47, 1}}) {
      EXPECT_LE(LargestDifference(loaded.Run(ids_, chunks), whole), tolerance)
          << SchemeName(scheme) << " weights, " << KvTypeName(kv_type) << " KV, chunks of "
          << chunks.front();
    }
  }
}

TEST_P(DecoderOfEveryKind, ThreadsChangeNothing) {
  for (const auto& [scheme, kv_type] : support::SchemesAndKvTypes()) {
    const DecoderOptions options = {.context_tokens = 64, .kv_type = kv_type};
    const auto model =
        std::make_shared<const ConvertedModel>(model_, ConvertOptions{.weights = scheme});
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
    ASSERT_TRUE(loaded.decoder().Forward(std::span(shorter).last(1), shorter.size() - 1, 1));
    const auto logits = loaded.decoder().Logits(0);
    ASSERT_TRUE(logits);
    const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(logits->size()),
                                  expected.end());
    const float tolerance = kv_type == KvType::kF32 ? 1e-5f : 2e-2f;
    EXPECT_LE(LargestDifference({logits->begin(), logits->end()}, last),
              tolerance * LargestMagnitude(last))
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
  EXPECT_EQ(loaded.decoder().pages().num_tokens(Decoder::kSequence), 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderOfEveryKind, testing::ValuesIn(support::TinySpecs()),
                         [](const auto& param) { return param.param.name; });

// Windows in alternate layers, with a rope base of their own, and a text that is many times longer
// than the windows.
TEST(Decoder, WindowsOfSomeLayersHoldFarPastTheWindow) {
  constexpr size_t kWindow = 16;
  const size_t num_tokens = support::IsEmulated() ? 160 : 480;
  CheckpointSpec spec = support::SpecMinistral();
  spec.config.max_position_embeddings = 512;
  for (reference::ReferenceAttention& layer : spec.config.layers) {
    const bool has_window = layer.sliding_window != 0;
    layer = {.rope_theta = has_window ? 1e4 : 1e6, .sliding_window = has_window ? kWindow : 0};
  }
  const reference::ReferenceModel model = support::MakeModel(spec);
  const std::vector<int32_t> ids = SomeIds(num_tokens, model.config.vocab_size);
  const std::vector<float> expected = ReferenceLogits(model, ids);
  const float largest = LargestMagnitude(expected);
  const ConvertOptions f32 = {.weights = Scheme::kF32};
  const auto converted = std::make_shared<const ConvertedModel>(model, f32);
  for (const auto& [kv_type, tolerance] :
       {std::pair{KvType::kF32, 1e-4f}, {KvType::kF16, 1e-2f}, {KvType::kInt8, 5e-2f}}) {
    LoadedModel loaded(converted, {.context_tokens = 512, .kv_type = kv_type},
                       support::UsualThreads());
    EXPECT_LT(LargestDifference(loaded.Run(ids, {128}), expected), tolerance * largest)
        << KvTypeName(kv_type);
    EXPECT_LT(LargestDifference(loaded.Run(ids, {37, 1}), expected), tolerance * largest)
        << KvTypeName(kv_type);
  }
  // Other windows or bases would be noticed.
  const auto with_layers = [&](const auto& change) {
    reference::ReferenceModel changed = model;
    for (reference::ReferenceAttention& layer : changed.config.layers) change(layer);
    return ReferenceLogits(changed, ids);
  };
  using Attention = reference::ReferenceAttention;
  for (const auto& other : {with_layers([](Attention& layer) { layer.sliding_window = 0; }),
                            with_layers([](Attention& layer) { layer.sliding_window = kWindow; }),
                            with_layers([](Attention& layer) { layer.rope_theta = 1e4; }),
                            with_layers([](Attention& layer) { layer.rope_theta = 1e6; })}) {
    EXPECT_GT(LargestDifference(other, expected), 0.1f * largest);
  }
}

// After a drop, keys of each layer must be rotated by the layer's own frequencies. Of two layers,
// one adds nothing, so that keys of the other one depend on their own token alone.
TEST(Decoder, ADropRotatesEachLayersKeysByItsOwnFrequencies) {
  for (size_t silent = 0; silent < 2; ++silent) {
    CheckpointSpec spec = support::SpecTwoRopes();
    spec.config.num_hidden_layers = 2;
    spec.config.layers.erase(spec.config.layers.begin());
    reference::ReferenceModel model = support::MakeModel(spec);
    const std::string prefix = "model.layers." + std::to_string(silent);
    for (const char* name : {".self_attn.o_proj.weight", ".mlp.down_proj.weight"}) {
      std::ranges::fill(model.tensors.at(prefix + name).values, 0.0f);
    }
    LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = 64}, 1);
    const std::vector<int32_t> ids = SomeIds(48, model.config.vocab_size);
    std::vector<int32_t> shorter = ids;
    shorter.erase(shorter.begin() + 5, shorter.begin() + 25);
    const std::vector<float> expected = ReferenceLogits(model, shorter);
    loaded.Run(ids, {47, 1});
    ASSERT_TRUE(loaded.Drop(5, 20));
    ASSERT_TRUE(loaded.decoder().Forward(std::span(shorter).last(1), shorter.size() - 1, 1));
    const auto logits = loaded.decoder().Logits(0);
    ASSERT_TRUE(logits);
    const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(logits->size()),
                                  expected.end());
    EXPECT_LE(LargestDifference({logits->begin(), logits->end()}, last),
              1e-4f * LargestMagnitude(last))
        << "layer " << silent << " is silent";
  }
}

// The same over several pages: of those that are dropped, whole ones are unlinked, and later ones
// are used again in another order.
TEST(Decoder, DroppedPagesLeaveNoTrace) {
  CheckpointSpec spec = support::SpecGqa();
  spec.config.num_hidden_layers = 1;
  spec.config.max_position_embeddings = 512;
  const reference::ReferenceModel model = support::MakeModel(spec);
  const auto converted =
      std::make_shared<const ConvertedModel>(model, ConvertOptions{.weights = Scheme::kF32});
  const std::vector<int32_t> ids = SomeIds(400, model.config.vocab_size);
  for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    LoadedModel loaded(converted, {.context_tokens = 400, .chunk_tokens = 100, .kv_type = kv_type},
                       support::UsualThreads());
    loaded.Run(ids, {100});
    std::vector<int32_t> shorter = ids;
    for (const auto& [first, count] : {std::pair<size_t, size_t>{4, 128}, {0, 64}, {70, 33}}) {
      const auto begin = shorter.begin() + static_cast<ptrdiff_t>(first);
      shorter.erase(begin, begin + static_cast<ptrdiff_t>(count));
      ASSERT_TRUE(loaded.Drop(first, count));
    }
    // The pages that were given back are filled again.
    const size_t num_left = shorter.size();
    shorter.insert(shorter.end(), ids.begin(), ids.begin() + 200);
    const auto rest = std::span(shorter).subspan(num_left);
    for (size_t done = 0; done < rest.size(); done += 100) {
      ASSERT_TRUE(loaded.decoder().Forward(rest.subspan(done, 100), num_left + done, 1));
    }
    const std::span<float> logits = Unwrap(loaded.decoder().Logits(0));
    LoadedModel fresh(converted, {.context_tokens = 400, .chunk_tokens = 100, .kv_type = kv_type},
                      support::UsualThreads());
    const std::vector<float> expected = fresh.Run(shorter, {100});
    const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(logits.size()),
                                  expected.end());
    const float tolerance = kv_type == KvType::kF32 ? 1e-5f : 2e-2f;
    EXPECT_LE(LargestDifference({logits.begin(), logits.end()}, last),
              tolerance * LargestMagnitude(last))
        << KvTypeName(kv_type);
  }
}

TEST(Decoder, RefusesPositionsAfterTheSequence) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = 8}, 1);
  const std::vector<int32_t> ids = {1, 2, 3};
  ASSERT_TRUE(loaded.decoder().Forward(ids, 0, 1));
  const Status refused = loaded.decoder().Forward(ids, 4, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfRange);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("the sequence has 3 tokens"));
  // Nothing has changed.
  EXPECT_TRUE(loaded.decoder().Logits(0));
  EXPECT_TRUE(loaded.decoder().Forward(ids, 3, 1));
  // Earlier positions forget later ones.
  EXPECT_TRUE(loaded.decoder().Forward(ids, 1, 1));
  EXPECT_EQ(loaded.decoder().pages().num_tokens(Decoder::kSequence), 4u);
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

TEST(Decoder, ProductsAloneLeaveTheCacheAsItIs) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kQb4w}, {.context_tokens = 64}, 2, 2);
  const std::vector<int32_t> ids = SomeIds(20, model.config.vocab_size);
  const std::vector<float> expected = loaded.Run(ids, {19, 1});
  Decoder& decoder = loaded.decoder();
  for (const size_t rows : {1, 20}) ASSERT_TRUE(decoder.RunLayerProducts(rows));
  EXPECT_FALSE(decoder.RunLayerProducts(decoder.chunk_tokens() + 1));
  ASSERT_TRUE(decoder.RunHeadProduct());
  EXPECT_FALSE(decoder.Logits(0));
  ASSERT_TRUE(decoder.Forward(std::span(ids).last(1), 19, 1));
  const auto logits = decoder.Logits(0);
  ASSERT_TRUE(logits);
  EXPECT_TRUE(std::equal(logits->rbegin(), logits->rend(), expected.rbegin()));
}

TEST(Decoder, CountsItsTimeWhereItIsAskedTo) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kQb4w}, {.context_tokens = 64}, 1);
  const std::vector<int32_t> ids = SomeIds(20, model.config.vocab_size);
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
    EXPECT_EQ(profile.time(kind).count() > 0, kind != OperatorKind::kSampling)
        << OperatorKindName(kind);
  }
}

TEST(Decoder, RefusesWhatDoesNotFit) {
  const auto model = support::MakeModel(support::SpecGqa());
  LoadedModel loaded(model, {.weights = Scheme::kF32}, {.context_tokens = 8, .chunk_tokens = 4}, 1);
  Decoder& decoder = loaded.decoder();
  const std::vector<int32_t> ids = {1, 2, 3, 4, 5};
  const auto code = [](const Status& status) { return status.error().code(); };
  EXPECT_EQ(code(decoder.Forward(ids, 0, 1)), ErrorCode::kOutOfRange);
  EXPECT_EQ(code(decoder.Forward({}, 0, 0)), ErrorCode::kOutOfRange);
  EXPECT_EQ(code(decoder.Forward(std::span(ids).first(4), 5, 1)), ErrorCode::kOutOfRange);
  EXPECT_EQ(code(decoder.Forward(std::span(ids).first(1), SIZE_MAX, 1)), ErrorCode::kOutOfRange);
  EXPECT_FALSE(decoder.Logits(0));
  ASSERT_TRUE(decoder.Forward(std::span(ids).first(4), 0, 0));
  for (const size_t num_logits : {size_t{5}, SIZE_MAX}) {
    const Status refused = decoder.Forward(std::span(ids).first(4), 4, num_logits);
    EXPECT_EQ(code(refused), ErrorCode::kOutOfRange);
    EXPECT_THAT(refused.error().message(), testing::HasSubstr(std::to_string(num_logits)));
    EXPECT_FALSE(decoder.Logits(0));
  }
  for (const size_t num_logits : {0, 1, 3, 4}) {
    EXPECT_TRUE(decoder.Forward(std::span(ids).first(4), 4, num_logits));
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
    const Status status = loaded.decoder().Forward(std::vector{id}, 0, 1);
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

  std::vector<float> Rows(Decoder& decoder, size_t count) const {
    const Status run = decoder.Forward(ids_, 0, count);
    if (!run) throw std::runtime_error(run.error().message());
    std::vector<float> all;
    for (size_t row = 0; row < count; ++row) {
      const std::vector<float> logits = Row(decoder, row);
      all.insert(all.end(), logits.begin(), logits.end());
    }
    return all;
  }

  reference::ReferenceModel model_;
  std::vector<int32_t> ids_;
  std::shared_ptr<const ConvertedModel> converted_;
};

TEST_P(LogitRows, OfOneProductAreThoseOfSeveral) {
  const std::vector<float> expected = Rows(Load(1).decoder(), kTokens);
  // XNNPACK's product of one row may round differently from that of many.
  const float tolerance = 1e-4f * LargestMagnitude(expected);
  for (const size_t max_rows : {2, 7, 14, 29, 30, 64}) {
    LoadedModel loaded = Load(max_rows);
    for (const size_t count : {size_t{1}, size_t{2}, size_t{17}, kTokens}) {
      const std::vector<float> rows = Rows(loaded.decoder(), count);
      const std::vector<float> last(expected.end() - static_cast<ptrdiff_t>(rows.size()),
                                    expected.end());
      EXPECT_LE(LargestDifference(rows, last), tolerance) << count << " by " << max_rows;
    }
    // Products of the same rows give the same bits.
    EXPECT_EQ(Rows(loaded.decoder(), kTokens), Rows(Load(max_rows, 3).decoder(), kTokens))
        << max_rows;
  }
}

TEST_P(LogitRows, MayBeAskedForInAnyOrder) {
  const std::vector<float> expected = Rows(Load(1).decoder(), kTokens);
  const float tolerance = 1e-4f * LargestMagnitude(expected);
  LoadedModel loaded = Load(4);
  constexpr size_t kRows = 11;
  ASSERT_TRUE(loaded.decoder().Forward(ids_, 0, kRows));
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

TEST_P(LogitRows, AreComputedAgainAfterTheCallerChangedThem) {
  LoadedModel loaded = Load(4);
  Decoder& decoder = loaded.decoder();
  const std::vector<float> expected = Rows(decoder, kTokens);
  const float tolerance = 1e-4f * LargestMagnitude(expected);
  ASSERT_TRUE(decoder.Forward(ids_, 0, kTokens));
  for (size_t row = 0; row < kTokens; ++row) {
    const std::vector<float> before = Row(decoder, row);
    std::ranges::fill(Unwrap(decoder.Logits(row)), -1e6f);
    EXPECT_LE(LargestDifference(Row(decoder, row), before), tolerance) << row;
  }
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
    ASSERT_TRUE(decoder.Forward(ids_, 0, count));
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
  const std::vector<float> expected = Rows(decoder, 3);
  ASSERT_TRUE(decoder.Forward(std::span(ids_).first(8), 0, 8));
  ASSERT_TRUE(decoder.Logits(0));
  EXPECT_EQ(Rows(decoder, 3), expected);
  EXPECT_FALSE(decoder.Logits(3));
  EXPECT_FALSE(decoder.Forward(std::vector<int32_t>{-1}, 0, 1));
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

TEST(Decoder, NeedsARowOfLogits) {
  const auto model = support::MakeModel(support::SpecGqa());
  EXPECT_THROW(LoadedModel(model, {}, {.context_tokens = 8, .max_logit_rows = 0}, 1),
               std::runtime_error);
}

}  // namespace
}  // namespace cria
