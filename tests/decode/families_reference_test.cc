// The families that compute more than Llama does: the decoder, which has much of it folded into
// weights, against the reference, which computes it as their own classes do, in every scheme.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "decode/loaded_model.h"
#include "reference/hugging_face_directory.h"
#include "support/family_checkpoint.h"
#include "support/schemes_and_kv_types.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

using support::FamilyCheckpoint;

// Longer than windows, and for longrope than what the model was trained for.
constexpr size_t kFamilyTokens = 48;

class FamiliesBesideTheReference : public testing::TestWithParam<FamilyCheckpoint> {
 protected:
  struct Made {
    reference::ReferenceModel model;
    std::map<Scheme, std::shared_ptr<const ConvertedModel>> converted;
  };

  // One for all tests: making and converting takes longer than most of them.
  static Made& MadeOnce() {
    static std::map<std::string, Made> all;
    const auto [entry, is_new] = all.try_emplace(GetParam().name);
    if (is_new) {
      const support::TemporaryDirectory directory;
      support::WriteFamilyDirectory(GetParam(), directory.path() / "model");
      entry->second.model = reference::ReadHuggingFaceDirectory(directory.path() / "model");
      for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
        entry->second.converted[scheme] =
            std::make_shared<const ConvertedModel>(GetParam(), ConvertOptions{.weights = scheme});
      }
    }
    return entry->second;
  }

  void SetUp() override {
    made_ = &MadeOnce();
    ids_ = SomeIds(kFamilyTokens, made_->model.config.vocab_size);
  }
  std::shared_ptr<const ConvertedModel> Converted(Scheme scheme) const {
    return made_->converted.at(scheme);
  }
  std::vector<float> Expected(size_t context) const {
    const std::vector<double> logits =
        reference::Logits(made_->model, {ids_.begin(), ids_.end()}, context);
    return {logits.begin(), logits.end()};
  }

  Made* made_ = nullptr;
  std::vector<int32_t> ids_;
};

TEST_P(FamiliesBesideTheReference, F32IsTheReference) {
  // The shorter context is not longer than what the models with longrope were trained for.
  for (const size_t context : {64, 32}) {
    ids_.resize(std::min(ids_.size(), context));
    const std::vector<float> expected = Expected(context);
    LoadedModel loaded(Converted(Scheme::kF32), {.context_tokens = context},
                       support::UsualThreads());
    for (const std::vector<size_t>& chunks : {std::vector<size_t>{48}, {1}, {29, 2, 1}}) {
      EXPECT_LT(LargestDifference(loaded.Run(ids_, chunks), expected),
                1e-4f * LargestMagnitude(expected))
          << "context of " << context << ", chunks of " << chunks.front();
    }
  }
}

// The share of rows whose largest difference is less than `tolerance`.
double ShareOfRowsWithin(float tolerance, const std::vector<float>& rows,
                         const std::vector<float>& expected) {
  const size_t row_size = expected.size() / kFamilyTokens;
  size_t count = 0;
  for (size_t i = 0; i < kFamilyTokens; ++i) {
    const auto row = [&](const std::vector<float>& all) {
      const auto begin = all.begin() + static_cast<ptrdiff_t>(i * row_size);
      return std::vector<float>(begin, begin + static_cast<ptrdiff_t>(row_size));
    };
    count += LargestDifference(row(rows), row(expected)) < tolerance ? 1 : 0;
  }
  return static_cast<double>(count) / kFamilyTokens;
}

// The bounds are about those of DecoderOfEveryKind, but Phi3Longrope with int4 differs by 0.62. In
// a mixture, a small error can choose another expert, whose output has nothing to do with the first
// one's, so that only most rows are near: of Gemma 4 with experts and an int8 cache, 35 of 48 on
// AVX2. A convolution multiplies three numbers that each have an error, so that a few rows differ
// by more. What linear attention reads is normalized, however small it is: in a random model, a
// small error can turn it around.
TEST_P(FamiliesBesideTheReference, QuantizedIsNearTheReference) {
  const std::vector<float> expected = Expected(kContext);
  const float largest = LargestMagnitude(expected);
  for (const auto& [scheme, kv_type] : support::SchemesAndKvTypes()) {
    LoadedModel loaded(Converted(scheme), {.context_tokens = kContext, .kv_type = kv_type},
                       support::UsualThreads());
    const float tolerance = scheme == Scheme::kQb4w   ? 0.75f
                            : scheme == Scheme::kQc8w ? 0.15f
                            : kv_type == KvType::kF32 ? 1e-4f
                                                      : 5e-2f;
    const std::vector<float> logits = loaded.Run(ids_, {48});
    const bool is_mixture = made_->model.config.experts.num_experts != 0;
    const bool is_linear =
        made_->model.config.linear.num_key_heads != 0 || made_->model.config.HasMamba();
    const bool has_convolution = made_->model.config.conv_L_cache != 0;
    const bool is_exact = scheme == Scheme::kF32 && kv_type == KvType::kF32;
    const double share = is_exact                  ? 1.0
                         : is_mixture && is_linear ? 0.5
                         : is_mixture || is_linear ? 0.65
                         : has_convolution         ? 0.9
                                                   : 1.0;
    EXPECT_GE(ShareOfRowsWithin(tolerance * largest, logits, expected), share)
        << SchemeName(scheme) << " weights, " << KvTypeName(kv_type)
        << " KV: " << LargestDifference(logits, expected) / largest;
  }
}

TEST_P(FamiliesBesideTheReference, ThreadsChangeNoBit) {
  for (const KvType kv_type : {KvType::kF32, KvType::kInt8}) {
    const DecoderOptions options = {
        .context_tokens = kContext, .kv_type = kv_type, .max_logit_rows = 7};
    LoadedModel one(Converted(Scheme::kQc8w), options, 1, 1);
    LoadedModel three(Converted(Scheme::kQc8w), options, 3, 2);
    EXPECT_EQ(one.Run(ids_, {48}), three.Run(ids_, {48}));
    EXPECT_EQ(one.Run(ids_, {1}), three.Run(ids_, {1}));
  }
}

// GGUF files of Qwen3.5 have heads of values in another order, which their model files keep.
class TiledValueHeads : public testing::TestWithParam<const char*> {};

TEST_P(TiledValueHeads, ComputeWhatHuggingFacesFilesDo) {
  const FamilyCheckpoint family = support::FamilyNamed(GetParam());
  const support::TemporaryDirectory directory;
  support::WriteFamilyDirectory(family, directory.path() / "model");
  support::WriteFamilyGguf(family, directory.path() / "model.gguf");
  const reference::ReferenceModel model =
      reference::ReadHuggingFaceDirectory(directory.path() / "model");
  const std::vector<int32_t> ids = SomeIds(kFamilyTokens, model.config.vocab_size);
  const std::vector<float> expected = ReferenceLogits(model, ids);
  const auto converted = std::make_shared<const ConvertedModel>(
      directory.path() / "model.gguf", ConvertOptions{.weights = Scheme::kF32});
  EXPECT_TRUE(converted->Open().config().linear_tiled_value_heads);
  LoadedModel loaded(converted, {.context_tokens = kContext}, support::UsualThreads());
  EXPECT_LT(LargestDifference(loaded.Run(ids, {29, 2, 1}), expected),
            1e-4f * LargestMagnitude(expected));
}

INSTANTIATE_TEST_SUITE_P(Families, TiledValueHeads, testing::Values("Qwen35", "Qwen35Moe"),
                         [](const auto& param) { return std::string(param.param); });

// With one layer, what the cache has of a token depends on that token alone, so that a text whose
// tokens are dropped is the text without them. Keys that are normalized behind rope are turned to
// their new positions, too.
TEST(FamiliesWithDroppedTokens, AreAsIfTheyHadNeverBeenThere) {
  for (const char* const name : {"Hunyuan", "Ministral3", "Ernie", "Glm4"}) {
    FamilyCheckpoint family = support::FamilyNamed(name);
    const std::string layers = "\"num_hidden_layers\":2";
    const size_t at = family.config_json.find(layers);
    ASSERT_NE(at, std::string::npos) << name;
    family.config_json[at + layers.size() - 1] = '1';
    const auto model =
        std::make_shared<const ConvertedModel>(family, ConvertOptions{.weights = Scheme::kF32});
    const DecoderOptions options = {.context_tokens = 64, .kv_type = KvType::kF32};
    LoadedModel loaded(model, options, support::UsualThreads());
    const std::vector<int32_t> ids = SomeIds(41, 300);
    loaded.Run({ids.begin(), ids.begin() + 40}, {40});
    ASSERT_TRUE(loaded.Drop(3, 17)) << name;
    Unwrap(loaded.Forward(std::span(ids).last(1), 23, 1));
    const auto row = Unwrap(loaded.decoder().Logits(0));
    std::vector<int32_t> kept = ids;
    kept.erase(kept.begin() + 3, kept.begin() + 20);
    LoadedModel fresh(model, options, support::UsualThreads());
    const std::vector<float> all = fresh.Run(kept, {kept.size()});
    const std::vector<float> expected(all.end() - 300, all.end());
    EXPECT_LT(LargestDifference({row.begin(), row.end()}, expected),
              1e-4f * LargestMagnitude(expected))
        << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamiliesBesideTheReference,
                         testing::ValuesIn(support::FamilyCheckpoints()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace cria
