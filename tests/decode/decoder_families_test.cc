// Models of the newer families against what transformers 5.24 computes for the same checkpoints, in
// f32, with its own configuration classes.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "converter/convert.h"
#include "decode/loaded_model.h"
#include "reference/hugging_face_directory.h"
#include "reference/reference_decoder.h"
#include "support/family_checkpoint.h"
#include "support/schemes_and_kv_types.h"
#include "support/temporary_directory.h"

namespace cria {
namespace {

// For a text of SomeIds: the mean of the negative log-likelihoods of all tokens but the first, and
// some logits after the last.
struct Prediction {
  double negative_log_likelihood;
  float logits[5];  // The logits of tokens 0, 70, 140, 210 and 280.
};
struct FamilyPredictions {
  const char* name;
  // For 24 tokens, within the trained context of longrope, and for 100, beyond it. Both are longer
  // than the windows.
  Prediction predictions[2];
};
constexpr std::array<size_t, 2> kTextTokens = {24, 100};
constexpr std::array<size_t, 2> kContexts = {32, 128};

const FamilyPredictions kPredictions[] = {
    {"Gemma",
     {{6.734371, {-1.00872f, 0.06734f, -2.44598f, -1.05291f, 0.46903f}},
      {6.831114, {-0.48147f, -0.77167f, 0.80974f, 0.44135f, 0.05562f}}}},
    {"GemmaBiases",
     {{6.169604, {1.47170f, -1.57651f, -0.94035f, -0.09194f, 2.02870f}},
      {6.072336, {-0.00330f, -1.06707f, 0.78135f, -0.86393f, 0.15387f}}}},
    {"Gemma2",
     {{6.402950, {0.04497f, 1.03947f, -1.70596f, -0.33611f, -0.92338f}},
      {6.159399, {1.08842f, -0.55243f, -1.06272f, 0.90141f, 1.35210f}}}},
    {"Gemma2NoCaps",
     {{6.438332, {-0.14161f, 1.19800f, -1.82912f, -0.90758f, -1.19479f}},
      {6.303507, {1.36055f, -1.61920f, -0.27865f, -0.24902f, -0.35846f}}}},
    {"Gemma3",
     {{6.557805, {0.27304f, 1.06012f, -1.52011f, -0.67404f, -2.43367f}},
      {6.450499, {-0.96151f, -0.88799f, -1.13887f, 0.87233f, 0.97071f}}}},
    {"Gemma3NewForm",
     {{6.150568, {0.26747f, -0.55241f, -0.87187f, -0.55692f, -1.33373f}},
      {6.146000, {0.20785f, -1.43650f, 0.23262f, -0.27653f, 1.18238f}}}},
    {"Gemma3Vision",
     {{6.557805, {0.27304f, 1.06012f, -1.52011f, -0.67404f, -2.43367f}},
      {6.450499, {-0.96151f, -0.88799f, -1.13887f, 0.87233f, 0.97071f}}}},
    {"Phi3",
     {{6.115807, {0.59991f, 0.54112f, 0.20386f, -0.20251f, 0.56256f}},
      {6.362858, {-0.34659f, -1.84766f, -0.87832f, -0.24434f, -0.16378f}}}},
    {"Phi3Longrope",
     {{6.202383, {1.55264f, 1.62584f, 0.11941f, 0.02148f, -0.44592f}},
      {6.315494, {1.29934f, 1.15286f, -0.39631f, 2.36312f, -0.83287f}}}},
    {"Phi4Mini",
     {{6.105675, {-2.01946f, 1.63973f, -1.29548f, -1.59954f, 0.84690f}},
      {6.303713, {-1.18860f, 0.70266f, -1.48130f, -0.36982f, 0.58213f}}}},
    {"SmolLm3",
     {{6.340055, {-0.31121f, 1.51877f, -0.92755f, -0.33700f, -0.53944f}},
      {6.436814, {0.06448f, -0.41303f, -0.37378f, -0.28400f, 0.24755f}}}},
    {"SmolLm3Window",
     {{6.199831, {0.97032f, -0.53153f, -0.52259f, -0.47358f, 2.23263f}},
      {6.267907, {0.83797f, -1.00488f, 1.15745f, -1.46402f, 1.52500f}}}},
    {"Granite",
     {{16.474732, {-1.67603f, -0.79759f, -3.47801f, -2.35090f, 0.94488f}},
      {16.297493, {-0.77753f, -0.80537f, 2.53462f, 1.14977f, -0.90195f}}}},
    {"GraniteBiases",
     {{5.940723, {0.62331f, -0.01084f, -0.16050f, -0.74745f, 0.86679f}},
      {5.854865, {0.26298f, -0.02419f, -0.04408f, -0.26868f, 0.18667f}}}},
    {"Olmo2",
     {{6.330358, {-0.41246f, -1.16601f, -2.55265f, 0.07149f, 1.02925f}},
      {6.191039, {0.85681f, 0.40973f, -1.19809f, 0.49321f, -0.09819f}}}},
    {"Olmo2Biases",
     {{6.277750, {-1.10708f, 0.05661f, -0.72830f, 0.10587f, -0.62134f}},
      {6.260773, {-0.99913f, 0.13435f, -0.23638f, 0.34459f, -0.93288f}}}},
    {"Mixtral",
     {{6.070586, {0.12091f, -0.12612f, -1.38032f, 1.58625f, 1.95075f}},
      {6.235054, {1.61649f, -0.78868f, -0.31668f, 1.20451f, -0.21745f}}}},
    {"MixtralWindow",
     {{5.974770, {0.00258f, 0.83243f, 1.69586f, 0.63939f, 1.94001f}},
      {6.307244, {-0.19096f, -0.02632f, -0.75681f, 0.95038f, 0.60588f}}}},
    {"Qwen2Moe",
     {{6.150023, {0.25936f, -0.54951f, -0.70950f, -0.66181f, 0.57971f}},
      {6.044715, {-0.28757f, -0.71153f, -1.17553f, -0.89680f, 0.11628f}}}},
    {"Qwen2MoeDenseLayers",
     {{6.836710, {-0.16882f, -1.50272f, -0.57449f, 0.37054f, 0.96077f}},
      {6.392880, {-2.28285f, -1.21850f, -1.24303f, 0.40719f, -1.17824f}}}},
    {"Qwen3Moe",
     {{6.639931, {2.53189f, 1.47767f, -0.46594f, -2.55747f, 0.95525f}},
      {6.595393, {1.35946f, 0.10332f, -0.69778f, 0.51258f, -0.29168f}}}},
    {"Qwen3MoeBiases",
     {{6.198864, {0.12637f, 1.39931f, 0.95058f, -0.05164f, -1.92274f}},
      {6.300203, {0.88097f, 0.90581f, 0.74618f, 0.10523f, -1.02485f}}}},
    {"Olmoe",
     {{6.305821, {1.55358f, -1.11085f, -0.67285f, 0.71857f, 1.12949f}},
      {6.144328, {0.99002f, -1.67379f, 0.72285f, -0.29504f, -0.07652f}}}},
    {"OlmoeAllExperts",
     {{6.306171, {-0.82777f, -0.51630f, -0.18151f, 0.09201f, 1.07213f}},
      {6.063575, {0.22161f, -0.96831f, -0.85390f, 1.05684f, 1.14769f}}}},
    {"GraniteMoe",
     {{6.061226, {-0.42610f, -0.15415f, -0.60397f, -0.66377f, 0.16851f}},
      {6.057740, {-0.01549f, -0.20520f, 0.80081f, 0.34418f, -0.27009f}}}},
    {"GraniteMoeShared",
     {{5.971735, {0.55638f, 0.39080f, -0.19980f, -0.67843f, 0.46794f}},
      {5.871967, {0.11738f, 0.04900f, -0.09529f, 0.10739f, -0.29857f}}}},
};

class DecoderOfFamilies : public testing::TestWithParam<FamilyPredictions> {
 protected:
  static std::shared_ptr<const ConvertedModel> Converted(const ConvertOptions& options) {
    return std::make_shared<const ConvertedModel>(support::FamilyNamed(GetParam().name), options);
  }
};

double MeanNegativeLogLikelihood(const std::vector<float>& logits, const std::vector<int32_t>& ids,
                                 size_t vocab_size) {
  double sum = 0.0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    double exponentials = 0.0;
    const float* row = logits.data() + i * vocab_size;
    for (size_t j = 0; j < vocab_size; ++j) exponentials += std::exp(double{row[j]});
    sum += std::log(exponentials) - row[ids[i + 1]];
  }
  return sum / static_cast<double>(ids.size() - 1);
}

TEST_P(DecoderOfFamilies, ComputesWhatTransformersDoes) {
  const auto model = Converted({.weights = Scheme::kF32});
  constexpr size_t kVocabSize = 300;
  for (size_t i = 0; i < kTextTokens.size(); ++i) {
    LoadedModel loaded(model, {.context_tokens = kContexts[i]}, support::UsualThreads());
    const std::vector<int32_t> ids = SomeIds(kTextTokens[i], kVocabSize);
    for (const size_t chunk : {size_t{16}, size_t{1}}) {
      const std::vector<float> logits = loaded.Run(ids, {chunk});
      const Prediction& expected = GetParam().predictions[i];
      EXPECT_NEAR(MeanNegativeLogLikelihood(logits, ids, kVocabSize),
                  expected.negative_log_likelihood, 1e-4);
      for (size_t j = 0; j < std::size(expected.logits); ++j) {
        EXPECT_NEAR(logits[(ids.size() - 1) * kVocabSize + 70 * j], expected.logits[j], 1e-3)
            << "token " << 70 * j << " after " << ids.size();
      }
    }
  }
}

TEST_P(DecoderOfFamilies, TheReferenceComputesItToo) {
  const support::TemporaryDirectory directory;
  support::WriteFamilyDirectory(support::FamilyNamed(GetParam().name), directory / "model");
  const reference::ReferenceModel model = reference::ReadHuggingFaceDirectory(directory / "model");
  constexpr size_t kVocabSize = 300;
  for (size_t i = 0; i < kTextTokens.size(); ++i) {
    const std::vector<int32_t> ids = SomeIds(kTextTokens[i], kVocabSize);
    const std::vector<double> exact = reference::Logits(model, ids, kContexts[i]);
    const std::vector<float> logits(exact.begin(), exact.end());
    const Prediction& expected = GetParam().predictions[i];
    EXPECT_NEAR(MeanNegativeLogLikelihood(logits, ids, kVocabSize),
                expected.negative_log_likelihood, 1e-5);
    for (size_t j = 0; j < std::size(expected.logits); ++j) {
      EXPECT_NEAR(logits[(ids.size() - 1) * kVocabSize + 70 * j], expected.logits[j], 1e-4);
    }
  }
}

TEST_P(DecoderOfFamilies, ChunksAgreeWithOnePass) {
  const std::vector<int32_t> ids = SomeIds(48, 300);
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w}) {
    LoadedModel loaded(Converted({.weights = scheme}), {.context_tokens = 64},
                       support::UsualThreads());
    const std::vector<float> whole = loaded.Run(ids, {48});
    const float tolerance = (scheme == Scheme::kF32 ? 1e-4f : 5e-2f) * LargestMagnitude(whole);
    for (const size_t chunk : {size_t{1}, size_t{7}, size_t{32}}) {
      EXPECT_LE(LargestDifference(loaded.Run(ids, {chunk}), whole), tolerance)
          << SchemeName(scheme) << ", chunks of " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, DecoderOfFamilies, testing::ValuesIn(kPredictions),
                         [](const auto& family) { return std::string(family.param.name); });

}  // namespace
}  // namespace cria
