// Decoders whose layers with windows give pages back, against decoders that keep all.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "decode/loaded_model.h"
#include "support/emulation.h"

namespace cria {
namespace {

using support::CheckpointSpec;

constexpr size_t kLongContext = 640;  // 10 pages.

// A model with a window of 70 tokens in some layers or in all.
CheckpointSpec SpecWithWindows(bool in_all_layers) {
  CheckpointSpec spec = in_all_layers ? support::SpecMistral() : support::SpecMinistral();
  spec.config.max_position_embeddings = kLongContext;
  if (in_all_layers) spec.config.sliding_window = 70;
  for (reference::ReferenceAttention& layer : spec.config.layers) {
    if (layer.sliding_window != 0) layer.sliding_window = 70;
  }
  return spec;
}

// Two decoders of such a model: one gives pages back; the other takes so large chunks that it keeps
// all.
struct WindowedDecoders {
  WindowedDecoders(bool in_all_layers, size_t chunk_tokens, KvType kv_type,
                   size_t num_sequences = 1) {
    const reference::ReferenceModel reference = support::MakeModel(SpecWithWindows(in_all_layers));
    ids = SomeIds(600, reference.config.vocab_size);
    const auto model =
        std::make_shared<const ConvertedModel>(reference, ConvertOptions{.weights = Scheme::kF32});
    const DecoderOptions options = {.context_tokens = kLongContext,
                                    .chunk_tokens = chunk_tokens,
                                    .kv_type = kv_type,
                                    .num_sequences = num_sequences};
    DecoderOptions keeps_all = options;
    keeps_all.chunk_tokens = kLongContext;
    decoders.emplace_back(model, options, support::UsualThreads());
    decoders.emplace_back(model, keeps_all, support::UsualThreads());
  }

  LoadedModel& windowed() { return decoders[0]; }
  LoadedModel& all() { return decoders[1]; }

  // Runs tokens from `position` on.
  void ExpectSameLogits(size_t position, std::span<const int32_t> tokens, size_t chunk) {
    while (!tokens.empty()) {
      const auto now = tokens.first(std::min(chunk, tokens.size()));
      std::vector<std::vector<float>> last;
      for (LoadedModel& loaded : decoders) {
        const Status run = loaded.Forward(now, position, 1);
        ASSERT_TRUE(run) << run.error().message();
        const auto logits = loaded.decoder().Logits(0);
        ASSERT_TRUE(logits);
        last.emplace_back(logits->begin(), logits->end());
      }
      ASSERT_EQ(last[0], last[1]) << now.size() << " tokens at " << position;
      position += now.size();
      tokens = tokens.subspan(now.size());
    }
  }

  std::vector<int32_t> ids;
  std::deque<LoadedModel> decoders;
};

// Which pages stay depends on no processor, and other tests compare attention on each, so that one
// combination is enough where each takes half a minute.
bool IsLeftOutUnderEmulation(bool in_all_layers, KvType kv_type) {
  return support::IsEmulated() && (in_all_layers || kv_type != KvType::kInt8);
}

TEST(DecoderWindows, PagesThatAreGivenBackChangeNothing) {
  for (const bool in_all_layers : {false, true}) {
    for (const auto& [chunk_tokens, kv_type] :
         {std::pair{64, KvType::kF32}, {200, KvType::kInt8}, {128, KvType::kF16}}) {
      if (IsLeftOutUnderEmulation(in_all_layers, kv_type)) continue;
      SCOPED_TRACE(testing::Message() << chunk_tokens << " tokens, all layers: " << in_all_layers);
      WindowedDecoders decoders(in_all_layers, static_cast<size_t>(chunk_tokens), kv_type);
      const KvPages& pages = decoders.windowed().decoder().sequences().pages();
      const KvPages& all = decoders.all().decoder().sequences().pages();
      ASSERT_EQ(pages.num_groups(), in_all_layers ? 1u : 2u);
      EXPECT_LT(pages.group(pages.num_groups() - 1).num_pages(), 10u);
      ASSERT_EQ(all.num_groups(), 1u);
      EXPECT_EQ(all.num_pages(), 10u);
      const std::span<const int32_t> ids = decoders.ids;
      for (const size_t chunk : {static_cast<size_t>(chunk_tokens), size_t{37}}) {
        decoders.ExpectSameLogits(0, ids.first(580), chunk);
        decoders.ExpectSameLogits(580, ids.subspan(580), 1);
      }
      // As far back as it goes, and no farther.
      const SequenceId sequence = decoders.windowed().sequence();
      size_t prefix = 600;
      while (pages.LongestPrefix(sequence, prefix - 1) != 0) --prefix;
      EXPECT_LT(prefix, 580u);
      const auto gone = decoders.windowed().Forward(ids.first(1), prefix - 1, 1);
      ASSERT_FALSE(gone);
      EXPECT_EQ(gone.error().code(), ErrorCode::kUsage);
      decoders.ExpectSameLogits(prefix, ids.first(60), 7);
      decoders.ExpectSameLogits(0, ids.first(100), 50);
    }
  }
}

TEST(DecoderWindows, DropsAreThoseOfAllPages) {
  for (const bool in_all_layers : {false, true}) {
    for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
      if (IsLeftOutUnderEmulation(in_all_layers, kv_type)) continue;
      WindowedDecoders decoders(in_all_layers, 128, kv_type);
      const std::span<const int32_t> ids = decoders.ids;
      struct Case {
        size_t first;
        size_t count;
        bool can_drop;
      };
      // 510 tokens lose some. Where fewer than the window stay, the first ones are needed.
      for (const auto& [first, count, can_drop] :
           {Case{4, 300, true}, Case{0, 256, true}, Case{100, 71, true}, Case{1, 437, true},
            Case{0, 480, true}, Case{64, 436, false}, Case{1, 441, false}}) {
        SCOPED_TRACE(testing::Message() << count << " after " << first);
        decoders.ExpectSameLogits(0, ids.first(510), 100);
        const KvPages& pages = decoders.windowed().decoder().sequences().pages();
        ASSERT_EQ(pages.CanDrop(decoders.windowed().sequence(), first, count), can_drop);
        ASSERT_EQ(decoders.windowed().Drop(first, count).has_value(), can_drop);
        if (!can_drop) continue;
        ASSERT_TRUE(decoders.all().Drop(first, count));
        decoders.ExpectSameLogits(510 - count, ids.subspan(510), 1);
      }
    }
  }
}

// Two sequences in one Forward, of which one shares the other's beginning, and then each goes on
// past the window.
TEST(DecoderWindows, SequencesGiveTheirOwnPagesBack) {
  WindowedDecoders decoders(false, 64, KvType::kF32, 2);
  ASSERT_EQ(decoders.windowed().decoder().sequences().pages().num_groups(), 2u);
  decoders.ExpectSameLogits(0, std::span(decoders.ids).first(150), 60);
  std::array<SequenceId, 2> second = {};
  for (size_t i = 0; i < 2; ++i) {
    Decoder& decoder = decoders.decoders[i].decoder();
    ASSERT_TRUE(decoder.sequences().Reserve(decoders.decoders[i].sequence(), 0));
    second[i] = Unwrap(decoder.sequences().Open());
    ASSERT_TRUE(decoder.sequences().Share(decoders.decoders[i].sequence(), second[i], 140));
    ASSERT_TRUE(decoder.CarryOutMoves());
  }
  size_t end = 150, other_end = 140;
  for (size_t step = 0; step < 130; ++step) {
    const size_t count = step % 5 == 0 ? 7 : 1;
    const auto tokens = std::span(decoders.ids).subspan(step, count + 1);
    std::vector<std::vector<float>> logits;
    for (size_t i = 0; i < 2; ++i) {
      Decoder& decoder = decoders.decoders[i].decoder();
      const std::array runs = {BatchRun{second[i], other_end, count, 1},
                               BatchRun{decoders.decoders[i].sequence(), end, 1, 1}};
      const Status run = decoder.Forward({tokens, runs});
      ASSERT_TRUE(run) << run.error().message();
      for (size_t row = 0; row < 2; ++row) {
        const auto computed = Unwrap(decoder.Logits(row));
        logits.emplace_back(computed.begin(), computed.end());
      }
    }
    ASSERT_EQ(logits[0], logits[2]) << step;
    ASSERT_EQ(logits[1], logits[3]) << step;
    other_end += count;
    ++end;
  }
  const KvPageGroup& windowed = decoders.windowed().decoder().sequences().pages().group(1);
  EXPECT_GT(windowed.first_row(second[0]), 100u);
  EXPECT_GT(windowed.first_row(decoders.windowed().sequence()), 0u);
}

}  // namespace
}  // namespace cria
