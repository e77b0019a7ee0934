// Layers of several kinds, and what a drop leaves in a cache of several pages.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decode/loaded_model.h"
#include "support/emulation.h"

namespace cria {
namespace {

using support::CheckpointSpec;

// Windows in alternate layers, with a rope base of their own, and a text that is many times longer
// than the windows.
TEST(DecoderLayers, WindowsOfSomeLayersHoldFarPastTheWindow) {
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
TEST(DecoderLayers, ADropRotatesEachLayersKeysByItsOwnFrequencies) {
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
    ASSERT_TRUE(loaded.Forward(std::span(shorter).last(1), shorter.size() - 1, 1));
    EXPECT_LE(ErrorOfLogits(loaded.decoder(), expected), 1e-4f)
        << "layer " << silent << " is silent";
  }
}

// The same over several pages: of those that are dropped, whole ones are unlinked, and later ones
// are used again in another order. Drops are behind the same tokens as before, then behind fewer
// and behind more.
class DroppedPages : public testing::TestWithParam<std::string> {};

TEST_P(DroppedPages, LeaveNoTrace) {
  CheckpointSpec spec = support::SpecNamed(GetParam());
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
    for (const auto& [first, count] :
         {std::pair<size_t, size_t>{6, 128}, {6, 16}, {6, 5}, {4, 1}, {0, 64}, {0, 3}, {70, 33}}) {
      const auto begin = shorter.begin() + static_cast<ptrdiff_t>(first);
      shorter.erase(begin, begin + static_cast<ptrdiff_t>(count));
      ASSERT_TRUE(loaded.Drop(first, count));
    }
    // The pages that were given back are filled again.
    const size_t num_left = shorter.size();
    shorter.insert(shorter.end(), ids.begin(), ids.begin() + 200);
    const auto rest = std::span(shorter).subspan(num_left);
    for (size_t done = 0; done < rest.size(); done += 100) {
      ASSERT_TRUE(loaded.Forward(rest.subspan(done, 100), num_left + done, 1));
    }
    LoadedModel fresh(converted, {.context_tokens = 400, .chunk_tokens = 100, .kv_type = kv_type},
                      support::UsualThreads());
    const std::vector<float> expected = fresh.Run(shorter, {100});
    EXPECT_LE(ErrorOfLogits(loaded.decoder(), expected), kv_type == KvType::kF32 ? 1e-5f : 2e-2f)
        << KvTypeName(kv_type);
  }
}

// Qwen2 has biases of keys, which int8 keys are stored without.
INSTANTIATE_TEST_SUITE_P(Models, DroppedPages, testing::Values("Gqa", "Qwen2"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace cria
