// The decoder against an independent float64 evaluation of the same checkpoint, and against itself:
// whole prompts, chunks and single steps.

#include "decode/decoder.h"

#include <gtest/gtest.h>

#include <vector>

#include "decode/decoder_of_every_kind.h"
#include "support/schemes_and_kv_types.h"

namespace cria {
namespace {

TEST_P(DecoderOfEveryKind, F32IsTheReference) {
  LoadedModel loaded(Converted(Scheme::kF32), {.context_tokens = 64}, support::UsualThreads());
  const std::vector<float> expected = ReferenceLogits(model_, ids_);
  EXPECT_LT(LargestDifference(loaded.Run(ids_, {48}), expected),
            1e-4f * LargestMagnitude(expected));
}

// int8 rounds each weight and activation to 1/127 of its largest; int4, with blocks of 32, to about
// 1/15. These bounds are several times what the seeds give, and far below what a wrong scale, a
// swapped nibble or a shifted row would.
TEST_P(DecoderOfEveryKind, QuantizedIsNearTheReference) {
  const std::vector<float> expected = ReferenceLogits(model_, ids_);
  const float largest = LargestMagnitude(expected);
  LoadedModel int8(Converted(Scheme::kQc8w), {.context_tokens = 64}, support::UsualThreads());
  EXPECT_LT(LargestDifference(int8.Run(ids_, {48}), expected), 0.10f * largest);
  LoadedModel int4(Converted(Scheme::kQb4w), {.context_tokens = 64}, support::UsualThreads());
  EXPECT_LT(LargestDifference(int4.Run(ids_, {48}), expected), 0.60f * largest);
  LoadedModel all_int4(
      model_, {.weights = Scheme::kQb4w, .embedding = Scheme::kQb4w, .head = Scheme::kQb4w},
      {.context_tokens = 64}, support::UsualThreads());
  EXPECT_LT(LargestDifference(all_int4.Run(ids_, {48}), expected), 0.75f * largest);
}

TEST_P(DecoderOfEveryKind, ChunksAgreeWithOnePass) {
  for (const auto& [scheme, kv_type] : support::SchemesAndKvTypes()) {
    LoadedModel loaded(Converted(scheme), {.context_tokens = 64, .kv_type = kv_type},
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

INSTANTIATE_TEST_SUITE_P(Kinds, DecoderOfEveryKind, testing::ValuesIn(support::TinySpecs()),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace cria
