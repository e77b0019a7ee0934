#include "llm/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grammar/constraint_source.h"
#include "llm/engine.h"
#include "llm/memory_plan_fixture.h"
#include "xnn/packing.h"

namespace cria {
namespace {

TEST(MemoryPlan, EveryLineIsAccountedForOnce) {
  for (const bool in_memory : {false, true}) {
    MemoryPlanOptions options = Options(1024, KvType::kF16);
    options.weights_in_memory = in_memory;
    const MemoryPlan plan = Plan(Outline(), options);
    uint64_t sum = 0;
    std::vector<std::string> names;
    for (const MemoryLine& line : plan.lines) {
      sum += line.bytes;
      names.push_back(line.name());
    }
    EXPECT_EQ(plan.steady_bytes(), sum);
    EXPECT_EQ(plan.steady_bytes(), plan.private_bytes() + plan.mapped_bytes());
    EXPECT_EQ(plan.peak_bytes(), std::max(plan.steady_bytes(), plan.loading_bytes));
    EXPECT_GE(plan.address_space_bytes, plan.steady_bytes());
    std::ranges::sort(names);
    EXPECT_TRUE(std::ranges::adjacent_find(names) == names.end());
  }
}

TEST(MemoryPlan, TheArenaIsDividedWithoutRest) {
  const MemoryPlanOptions options = Options(1000, KvType::kInt8, 3, 77);
  const MemoryPlan plan = Plan(Outline(), options);
  const DecoderMemory memory = PlanDecoderMemory(Outline().config, options.decoder, 3);
  uint64_t sum = 0;
  for (const MemoryPart part :
       {MemoryPart::kKvCache, MemoryPart::kSequenceTables, MemoryPart::kRopeTables,
        MemoryPart::kNormWeights, MemoryPart::kLogits, MemoryPart::kActivations}) {
    sum += LineBytes(plan, part);
  }
  EXPECT_EQ(sum, memory.layout.total_bytes());
  EXPECT_LT(LineBytes(plan, MemoryPart::kActivations), memory.layout.total_bytes());
}

TEST(MemoryPlan, TheLayerThatGuessesIsCountedWhereItIsUsed) {
  ModelOutline outline = Outline();
  outline.num_mtp_matrices = 2;
  const uint64_t mtp_bytes = [&] {
    const std::vector<uint64_t> packed = *xnn::PackedBytes(outline.matrices);
    return packed[packed.size() - 1] + packed[packed.size() - 2];
  }();
  const auto packed = [&](bool has_mtp, bool in_memory) {
    MemoryPlanOptions options = Options(256, KvType::kInt8);
    options.decoder.has_mtp = has_mtp;
    options.weights_in_memory = in_memory;
    return LineBytes(Plan(outline, options), MemoryPart::kPackedWeights);
  };
  EXPECT_EQ(packed(false, false) + mtp_bytes, packed(true, false));
  // The weights of the layer that guesses tokens are packed there even if nothing reads them.
  EXPECT_EQ(packed(false, true), packed(true, true));
  // Its keys and values are those of one layer.
  const auto cache = [&](bool has_mtp) {
    MemoryPlanOptions options = Options(256, KvType::kF32);
    options.decoder.has_mtp = has_mtp;
    return LineBytes(Plan(outline, options), MemoryPart::kKvCache);
  };
  const uint64_t num_layers = outline.config.num_hidden_layers;
  EXPECT_EQ(cache(true) * num_layers, cache(false) * (num_layers + 1));
}

TEST(MemoryPlan, ConstraintsAreExact) {
  const size_t vocab_size = Outline().config.vocab_size;
  const MemoryPlan without = Plan(Outline(), Options(256, KvType::kF32));
  for (const MemoryPart part : {MemoryPart::kConstraints, MemoryPart::kReadingConstraints}) {
    EXPECT_FALSE(std::ranges::contains(without.lines, part, &MemoryLine::part));
  }
  // One is read at a time.
  const uint64_t reading = grammar::kMaxReadingBytes;
  for (const size_t count : {1u, 3u}) {
    MemoryPlanOptions options = Options(256, KvType::kF32);
    options.max_constraints = count;
    const MemoryPlan plan = Plan(Outline(), options);
    const uint64_t bytes =
        ConstraintTokens::MemoryBytes(vocab_size) + count * Constraint::MemoryBytes(vocab_size);
    EXPECT_EQ(LineBytes(plan, MemoryPart::kConstraints), bytes);
    EXPECT_EQ(LineBytes(plan, MemoryPart::kReadingConstraints), reading);
    EXPECT_EQ(plan.private_bytes(), without.private_bytes() + bytes + reading);
    EXPECT_EQ(plan.address_space_bytes, without.address_space_bytes + bytes + reading);
    // Drafts are chosen without them.
    options.draft_model = std::make_shared<const ModelOutline>(Outline());
    EXPECT_EQ(DraftModelOptions(options).max_constraints, 0u);
  }
}

TEST(MemoryPlan, KeysAndValuesAreExact) {
  const uint64_t values = kKvValuesPerToken * 1024;
  // A context that does not fill its last page takes the whole page.
  for (const size_t context : {961, 1024}) {
    const auto cache_bytes = [&](KvType type) {
      return LineBytes(Plan(Outline(), Options(context, type)), MemoryPart::kKvCache);
    };
    EXPECT_EQ(cache_bytes(KvType::kF32), 4 * values);
    EXPECT_EQ(cache_bytes(KvType::kF16), 2 * values);
    // One scale for the 32 values of a head.
    EXPECT_EQ(cache_bytes(KvType::kInt8), values + values / 32 * sizeof(float));
  }
}

TEST(MemoryPlan, LayersWithAWindowTakeItsPages) {
  const auto plan_with = [](const std::vector<LayerKind>& kinds, std::vector<uint8_t> of_layer,
                            size_t context) {
    ModelOutline model = Outline();
    model.config.layer_kinds = kinds;
    model.config.kind_of_layer.assign(of_layer.begin(), of_layer.end());
    return Plan(model, Options(context, KvType::kF32));
  };
  constexpr uint64_t kLayerPageBytes = kKvValuesPerToken / 4 * kKvPageTokens * sizeof(float);
  const LayerKind full = {.rope_theta = 10000.0f};
  const LayerKind windowed = {.sliding_window = 512, .rope_theta = 10000.0f};
  // 511 positions before a chunk of 128 lie on up to 11 pages.
  for (const size_t context : {2048, 4096}) {
    const uint64_t pages = context / kKvPageTokens;
    const MemoryPlan without = plan_with({full}, {}, context);
    EXPECT_EQ(LineBytes(without, MemoryPart::kKvCache), 4 * pages * kLayerPageBytes);
    const MemoryPlan some = plan_with({full, windowed}, {0, 1, 1, 1}, context);
    EXPECT_EQ(LineBytes(some, MemoryPart::kKvCache), (pages + 3 * 11) * kLayerPageBytes);
    const MemoryPlan all = plan_with({windowed}, {}, context);
    EXPECT_EQ(LineBytes(all, MemoryPart::kKvCache), 4 * 11 * kLayerPageBytes);
    EXPECT_LT(all.private_bytes(), some.private_bytes());
    EXPECT_LT(some.private_bytes(), without.private_bytes());
    EXPECT_LT(LineBytes(some, MemoryPart::kSequenceTables),
              LineBytes(some, MemoryPart::kKvCache) / 100);
  }
  // Where the window saves no page, the plan is that without it.
  for (const size_t context : {64, 512, 704}) {
    EXPECT_EQ(plan_with({windowed}, {}, context).private_bytes(),
              plan_with({full}, {}, context).private_bytes());
  }
}

TEST(MemoryPlan, RowsOfLogitsTakeTheirFloatsAndNothingElse) {
  MemoryPlanOptions options = Options(1024, KvType::kF32, 2, 128);
  const MemoryPlan one = Plan(Outline(), options);
  EXPECT_EQ(LineBytes(one, MemoryPart::kLogits), 4096 * sizeof(float));
  for (const size_t rows : {2, 14, 127, 128}) {
    options.decoder.max_logit_rows = rows;
    const MemoryPlan several = Plan(Outline(), options);
    const uint64_t more = (rows - 1) * 4096 * sizeof(float);
    EXPECT_EQ(LineBytes(several, MemoryPart::kLogits), LineBytes(one, MemoryPart::kLogits) + more)
        << rows;
    EXPECT_EQ(several.private_bytes(), one.private_bytes() + more) << rows;
    EXPECT_EQ(several.mapped_bytes(), one.mapped_bytes()) << rows;
    EXPECT_EQ(several.loading_bytes, one.loading_bytes) << rows;
    EXPECT_EQ(several.address_space_bytes, one.address_space_bytes + more) << rows;
  }
}

TEST(MemoryPlan, EveryRopeTableIsCounted) {
  const auto rope_bytes = [](const std::vector<LayerKind>& kinds) {
    ModelOutline model = Outline();
    model.config.layer_kinds = kinds;
    return LineBytes(Plan(model, Options(1024, KvType::kF32)), MemoryPart::kRopeTables);
  };
  // Cosines and sines of the 16 pairs of a head.
  constexpr uint64_t kTableBytes = 2 * 1024 * 16 * sizeof(float);
  const LayerKind full = {.rope_theta = 1e6f};
  EXPECT_EQ(rope_bytes({full}), kTableBytes);
  EXPECT_EQ(rope_bytes({full, {.sliding_window = 64, .rope_theta = 1e6f}}), kTableBytes);
  EXPECT_EQ(rope_bytes({full, {.sliding_window = 64, .rope_theta = 1e4f}}), 2 * kTableBytes);
}

TEST(MemoryPlan, PageTablesAreSmall) {
  const MemoryPlan plan = Plan(Outline(), Options(1024, KvType::kInt8));
  const uint64_t bytes = LineBytes(plan, MemoryPart::kSequenceTables);
  EXPECT_GE(bytes, KvPages::MemoryBytes(ShapeOfKvPages(Outline().config, plan.options.decoder)));
  EXPECT_LT(bytes, LineBytes(plan, MemoryPart::kKvCache) / 100);
}

TEST(MemoryPlan, WeightsAreWhatPackingTakes) {
  for (const Scheme scheme : {Scheme::kF32, Scheme::kQc8w, Scheme::kQb4w}) {
    const ModelOutline model = Outline(scheme);
    uint64_t packed = 0;
    for (const TensorLayout& matrix : model.matrices) packed += xnn::PackedBytes(matrix).value();
    EXPECT_EQ(LineBytes(Plan(model, Options(64, KvType::kF32)), MemoryPart::kPackedWeights),
              packed);
  }
}

TEST(MemoryPlan, AnEmbeddingTableCountsOnlyWhereItIsMapped) {
  ModelOutline model = Outline();
  const MemoryPlan mapped = Plan(model, Options(64, KvType::kF32));
  EXPECT_EQ(LineBytes(mapped, MemoryPart::kEmbeddingTable), 4096 * (256 + sizeof(float)));
  model.file_is_mappable = false;
  const MemoryPlan read = Plan(model, Options(64, KvType::kF32));
  EXPECT_EQ(LineBytes(read, MemoryPart::kEmbeddingTable), 0);
  EXPECT_EQ(mapped.address_space_bytes - read.address_space_bytes,
            LineBytes(mapped, MemoryPart::kEmbeddingTable));
}

TEST(MemoryPlan, WeightsInMemoryCannotBeReclaimed) {
  MemoryPlanOptions options = Options(512, KvType::kF32);
  const MemoryPlan mapped = Plan(Outline(), options);
  options.weights_in_memory = true;
  const MemoryPlan in_memory = Plan(Outline(), options);
  const uint64_t weights = LineBytes(mapped, MemoryPart::kPackedWeights);
  EXPECT_EQ(in_memory.private_bytes(), mapped.private_bytes() + weights);
  EXPECT_EQ(in_memory.mapped_bytes(), mapped.mapped_bytes() - weights);
  EXPECT_EQ(in_memory.steady_bytes(), mapped.steady_bytes());
  EXPECT_EQ(in_memory.loading_bytes, mapped.loading_bytes + weights);
}

TEST(MemoryPlan, TheProgramIsPartOfIt) {
  const MemoryPlan plan = Plan(Outline(), Options(512, KvType::kF32));
  platform::MemoryUsage larger = kProgram;
  larger.private_bytes += 1000;
  larger.file_mapped_bytes += 200;
  larger.virtual_bytes += 30'000;
  const MemoryPlan grown = Plan(Outline(), Options(512, KvType::kF32), larger);
  EXPECT_EQ(grown.private_bytes(), plan.private_bytes() + 1000);
  EXPECT_EQ(grown.mapped_bytes(), plan.mapped_bytes() + 200);
  EXPECT_EQ(grown.loading_bytes, plan.loading_bytes + 1200);
  EXPECT_EQ(grown.address_space_bytes, plan.address_space_bytes + 30'000);
}

// Loading determines the peak if it takes more memory than running.
TEST(MemoryPlan, ThePeakIsTheLargerOfLoadingAndRunning) {
  const MemoryPlan small = Plan(Outline(), Options(64, KvType::kInt8, 4));
  EXPECT_GT(small.loading_bytes, small.steady_bytes());
  EXPECT_EQ(small.peak_bytes(), small.loading_bytes);
  const MemoryPlan large = Plan(Outline(), Options(4096, KvType::kF32, 1));
  EXPECT_GT(large.steady_bytes(), large.loading_bytes);
  EXPECT_EQ(large.peak_bytes(), large.steady_bytes());
}

TEST(MemoryPlan, MoreOfAnythingNeverTakesLess) {
  const std::vector<size_t> contexts = {1, 63, 64, 100, 512, 1000, 2048, 4096};
  const std::vector<size_t> threads = {1, 2, 3, 4, 8};
  const std::vector<size_t> chunks = {1, 7, 64, 128, 512, 4096};
  const auto expect_monotonic = [](const std::vector<size_t>& values,
                                   const std::function<MemoryPlanOptions(size_t)>& options) {
    std::optional<MemoryPlan> before;
    for (const size_t value : values) {
      const MemoryPlan plan = Plan(Outline(), options(value));
      if (before) {
        EXPECT_GE(plan.private_bytes(), before->private_bytes()) << value;
        EXPECT_GE(plan.mapped_bytes(), before->mapped_bytes()) << value;
        EXPECT_GE(plan.peak_bytes(), before->peak_bytes()) << value;
        EXPECT_GE(plan.address_space_bytes, before->address_space_bytes) << value;
      }
      before = plan;
    }
  };
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    expect_monotonic(contexts, [&](size_t context) { return Options(context, type); });
    expect_monotonic(threads, [&](size_t count) { return Options(1000, type, count); });
    expect_monotonic(chunks, [&](size_t chunk) { return Options(1000, type, 2, chunk); });
  }
}

TEST(MemoryPlan, OneThreadHasNoStackButItsOwn) {
  const MemoryPlan one = Plan(Outline(), Options(512, KvType::kF32, 1));
  const MemoryPlan two = Plan(Outline(), Options(512, KvType::kF32, 2));
  EXPECT_GE(two.address_space_bytes - one.address_space_bytes, platform::ThreadStackBytes());
}

TEST(MemoryPlan, APoolForPromptsTakesItsOwnStacks) {
  MemoryPlanOptions options = Options(1024, KvType::kF32, 2);
  const MemoryPlan one_pool = Plan(Outline(), options);
  options.num_batch_threads = 4;
  const MemoryPlan two_pools = Plan(Outline(), options);
  // The calling thread belongs to both.
  EXPECT_EQ(LineBytes(two_pools, MemoryPart::kThreadStacks),
            LineBytes(one_pool, MemoryPart::kThreadStacks) / 2 * 5);
  EXPECT_GE(two_pools.address_space_bytes,
            one_pool.address_space_bytes + 3 * platform::ThreadStackBytes());
  // Scratch is for the larger of them.
  EXPECT_EQ(LineBytes(two_pools, MemoryPart::kActivations),
            LineBytes(Plan(Outline(), Options(1024, KvType::kF32, 4)), MemoryPart::kActivations));
}

size_t ResolvedLogitRows(uint64_t max_bytes, uint32_t vocab_size, size_t chunk_tokens) {
  ModelOutline model = Outline();
  model.config.vocab_size = vocab_size;
  return ResolveOptions(model, {.num_threads = 1,
                                .context_tokens = 1024,
                                .chunk_tokens = chunk_tokens,
                                .max_logit_bytes = max_bytes})
      .decoder.max_logit_rows;
}

TEST(ResolveOptions, TheCacheIsAsTheModelPrefersUnlessATypeIsNamed) {
  ModelOutline model = Outline();
  const auto resolved = [&model](std::optional<KvType> kv_type) {
    return ResolveOptions(model, {.num_threads = 1, .kv_type = kv_type}).decoder.kv_type;
  };
  EXPECT_EQ(resolved(std::nullopt), KvType::kInt8);
  model.prefers_f16_cache = true;
  EXPECT_EQ(resolved(std::nullopt), KvType::kF16);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    EXPECT_EQ(resolved(type), type);
  }
}

TEST(ResolveOptions, AsManyRowsOfLogitsAsFitAtLeastOneAndAtMostAChunk) {
  const uint64_t row = 1000 * sizeof(float);
  for (const uint64_t max_bytes : {uint64_t{0}, uint64_t{1}, row - 1, row, 2 * row - 1}) {
    EXPECT_EQ(ResolvedLogitRows(max_bytes, 1000, 128), 1u) << max_bytes;
  }
  EXPECT_EQ(ResolvedLogitRows(2 * row, 1000, 128), 2u);
  EXPECT_EQ(ResolvedLogitRows(13 * row, 1000, 128), 13u);
  // Whole tiles of 14 rows.
  EXPECT_EQ(ResolvedLogitRows(14 * row, 1000, 128), 14u);
  EXPECT_EQ(ResolvedLogitRows(28 * row - 1, 1000, 128), 14u);
  EXPECT_EQ(ResolvedLogitRows(28 * row, 1000, 128), 28u);
  EXPECT_EQ(ResolvedLogitRows(128 * row - 1, 1000, 128), 126u);
  for (const uint64_t max_bytes : {128 * row, 1000 * row, UINT64_MAX}) {
    EXPECT_EQ(ResolvedLogitRows(max_bytes, 1000, 128), 128u) << max_bytes;
    EXPECT_EQ(ResolvedLogitRows(max_bytes, 1000, 1), 1u) << max_bytes;
  }
  // A chunk is no longer than the context.
  EXPECT_EQ(ResolvedLogitRows(UINT64_MAX, 1000, 4096), 1024u);
}

// Vocabularies of Llama 2, Llama 3 and Qwen 2.5, and the largest.
TEST(ResolveOptions, MeasuringTakesAtMostTenMegabytesMoreThanAChat) {
  for (const uint32_t vocab_size : {512u, 32'000u, 128'256u, 151'936u, 1u << 20}) {
    ModelOutline model = Outline();
    model.config.vocab_size = vocab_size;
    EngineOptions options = {.num_threads = 2};
    const MemoryPlan chat = Plan(model, ResolveOptions(model, options));
    options.max_logit_bytes = kMeasuringLogitBytes;
    const MemoryPlan measuring = Plan(model, ResolveOptions(model, options));
    EXPECT_LE(measuring.private_bytes(), chat.private_bytes() + 10'000'000) << vocab_size;
    const size_t rows = measuring.options.decoder.max_logit_rows;
    EXPECT_EQ(chat.options.decoder.max_logit_rows, 1u);
    EXPECT_GE(rows, vocab_size <= 151'936u ? 13u : 2u) << vocab_size;
  }
}

ModelOutline MixtureOutline(uint32_t num_experts) {
  ModelConfig config = Outline().config;
  config.num_experts = num_experts;
  config.num_experts_per_tok = 4;
  config.moe_intermediate_size = 256;
  return OutlineOfConfig(config, Scheme::kQb4w);
}

// A token needs what all tokens need and the experts that it chooses; the other experts may stay on
// the disk.
TEST(MemoryPlan, OtherExpertsNeedNoMemory) {
  const MemoryPlanOptions options = Options(1024, KvType::kInt8);
  const MemoryPlan few = Plan(MixtureOutline(16), options);
  const uint64_t chosen = LineBytes(few, MemoryPart::kTokenExperts);
  EXPECT_EQ(few.token_expert_bytes, chosen);
  EXPECT_EQ(LineBytes(few, MemoryPart::kOtherExperts), 3 * chosen);
  EXPECT_EQ(few.on_demand_bytes(), 3 * chosen);
  // 4 layers of 4 experts with 3 matrices of 4 bits.
  EXPECT_GT(chosen, 4 * 4 * 3 * 256 * 256 / 2);
  EXPECT_LT(chosen, 4 * 4 * 3 * 256 * 256);
  // More experts only take more of the address space, and rows of the router.
  const MemoryPlan many = Plan(MixtureOutline(64), options);
  EXPECT_EQ(many.token_expert_bytes, chosen);
  EXPECT_EQ(many.on_demand_bytes(), 15 * chosen);
  EXPECT_LT(many.steady_bytes() - few.steady_bytes(), 1 << 20);
  EXPECT_GE(many.address_space_bytes, few.address_space_bytes + 12 * chosen);
  EXPECT_EQ(many.steady_bytes(), many.private_bytes() + many.mapped_bytes());
  const MemoryBounds bounds = {.resident_bytes = many.peak_bytes()};
  EXPECT_TRUE(Fits(many, bounds));
  EXPECT_FALSE(Fits(many, {.resident_bytes = many.peak_bytes() - 1}));
  // Dense models have neither line.
  const MemoryPlan dense = Plan(Outline(), options);
  EXPECT_EQ(dense.on_demand_bytes() + dense.token_expert_bytes, 0u);
  EXPECT_FALSE(std::ranges::contains(dense.lines, MemoryPart::kOtherExperts, &MemoryLine::part));
}

TEST(MemoryPlan, ExpertsInPrivateMemoryAllCount) {
  MemoryPlanOptions options = Options(1024, KvType::kInt8);
  const MemoryPlan mapped = Plan(MixtureOutline(16), options);
  options.weights_in_memory = true;
  const MemoryPlan held = Plan(MixtureOutline(16), options);
  EXPECT_EQ(held.on_demand_bytes(), 0u);
  EXPECT_EQ(held.DiskBytesPerToken(0), 0u);
  EXPECT_EQ(held.steady_bytes(), mapped.steady_bytes() + mapped.on_demand_bytes());
}

// What does not fit is read again: evenly chosen experts are in memory as often as there is room.
TEST(MemoryPlan, ForetellsWhatATokenReadsFromTheDisk) {
  const MemoryPlan plan = Plan(MixtureOutline(16), Options(1024, KvType::kInt8));
  const uint64_t chosen = plan.token_expert_bytes;
  const uint64_t rest = plan.steady_bytes() - chosen;
  EXPECT_EQ(plan.DiskBytesPerToken(rest + 4 * chosen), 0u);
  EXPECT_EQ(plan.DiskBytesPerToken(UINT64_MAX), 0u);
  EXPECT_NEAR(plan.DiskBytesPerToken(rest + 3 * chosen), chosen / 4.0, 2.0);
  EXPECT_NEAR(plan.DiskBytesPerToken(rest + chosen), 3.0 * chosen / 4.0, 2.0);
  EXPECT_EQ(plan.DiskBytesPerToken(rest), chosen);
  EXPECT_EQ(plan.DiskBytesPerToken(0), chosen);
  EXPECT_EQ(Plan(Outline(), Options(1024, KvType::kInt8)).DiskBytesPerToken(0), 0u);
}

}  // namespace
}  // namespace cria
