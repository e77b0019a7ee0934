// Limits of memory, and what fits them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/format.h"
#include "core/format_bytes.h"
#include "llm/memory_plan.h"
#include "llm/memory_plan_fixture.h"
#include "support/mebibyte.h"

namespace cria {
namespace {

using support::kMebibyte;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::Not;

TEST(MemoryBounds, TheLowestLimitHolds) {
  const auto none = MemoryBounds::Of({}, std::nullopt);
  EXPECT_FALSE(none.resident_bytes);
  EXPECT_FALSE(none.address_space_bytes);

  const auto set = MemoryBounds::Of({}, 100);
  EXPECT_EQ(set.resident_bytes, 100u);
  EXPECT_THAT(set.resident_source, HasSubstr("set"));

  const auto group = MemoryBounds::Of({.cgroup_bytes = 200}, std::nullopt);
  EXPECT_EQ(group.resident_bytes, 200u);
  EXPECT_THAT(group.resident_source, HasSubstr("control group"));

  const auto set_is_less = MemoryBounds::Of({.cgroup_bytes = 200}, 199);
  EXPECT_EQ(set_is_less.resident_bytes, 199u);
  EXPECT_THAT(set_is_less.resident_source, HasSubstr("set"));

  const auto group_is_less = MemoryBounds::Of({.cgroup_bytes = 200}, 201);
  EXPECT_EQ(group_is_less.resident_bytes, 200u);
  EXPECT_THAT(group_is_less.resident_source, HasSubstr("control group"));

  const auto both = MemoryBounds::Of({.address_space_bytes = 7}, 0);
  EXPECT_EQ(both.resident_bytes, 0u);
  EXPECT_EQ(both.address_space_bytes, 7u);
}

TEST(Fits, IsExactToTheByte) {
  const MemoryPlan plan = Plan(Outline(), Options(1024, KvType::kF32));
  EXPECT_TRUE(Fits(plan, {}));
  EXPECT_TRUE(Fits(plan, {.resident_bytes = plan.peak_bytes()}));
  EXPECT_FALSE(Fits(plan, {.resident_bytes = plan.peak_bytes() - 1}));
  EXPECT_TRUE(Fits(plan, {.address_space_bytes = plan.address_space_bytes}));
  EXPECT_FALSE(Fits(plan, {.address_space_bytes = plan.address_space_bytes - 1}));
  EXPECT_FALSE(Fits(plan, {.resident_bytes = plan.peak_bytes() - 1,
                           .address_space_bytes = plan.address_space_bytes}));
}

// What FindFitting is to find for one type: the context that was asked for, or else the longest
// multiple of 64 below it; 0 for none.
size_t LongestByTryingAll(const ModelOutline& model, MemoryPlanOptions options,
                          const MemoryBounds& bounds) {
  const auto fits = [&](size_t context) {
    options.decoder.context_tokens = context;
    return Fits(Plan(model, options), bounds);
  };
  const size_t wanted = options.decoder.context_tokens;
  if (fits(wanted)) return wanted;
  for (size_t context = wanted / 64 * 64; context > 0; context -= 64) {
    if (fits(context)) return context;
  }
  return 0;
}

void ExpectFoundIsLongest(const ModelOutline& model, const MemoryPlan& plan,
                          const MemoryBounds& bounds) {
  const auto found = FindFitting(model, plan, bounds, kProgram);
  ASSERT_TRUE(found);
  std::vector<std::pair<KvType, size_t>> expected;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
    if (type < plan.options.decoder.kv_type) continue;
    MemoryPlanOptions options = plan.options;
    options.decoder.kv_type = type;
    if (const size_t longest = LongestByTryingAll(model, options, bounds)) {
      expected.push_back({type, longest});
    }
  }
  std::vector<std::pair<KvType, size_t>> actual;
  for (const MemoryPlanOptions& options : *found) {
    EXPECT_TRUE(Fits(Plan(model, options), bounds));
    EXPECT_EQ(options.num_threads, plan.options.num_threads);
    EXPECT_EQ(options.decoder.chunk_tokens, plan.options.decoder.chunk_tokens);
    EXPECT_EQ(options.weights_in_memory, plan.options.weights_in_memory);
    actual.push_back({options.decoder.kv_type, options.decoder.context_tokens});
  }
  EXPECT_EQ(actual, expected);
}

TEST(FindFitting, FindsTheLongestContexts) {
  static_assert(KvType::kF32 < KvType::kF16 && KvType::kF16 < KvType::kInt8);
  const ModelOutline model = Outline();
  for (const size_t context : {1500, 1000, 100, 40}) {
    for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kInt8}) {
      const MemoryPlan plan = Plan(model, Options(context, type));
      const uint64_t least = Plan(model, Options(1, KvType::kInt8)).peak_bytes();
      const uint64_t step = std::max<uint64_t>((plan.peak_bytes() - least) / 6, 1);
      for (uint64_t limit = least - 1; limit < plan.peak_bytes(); limit += step) {
        SCOPED_TRACE(Format("context {}, limit {}", context, limit));
        ExpectFoundIsLongest(model, plan, {.resident_bytes = limit});
      }
      SCOPED_TRACE(Format("context {}, address space", context));
      ExpectFoundIsLongest(model, plan, {.address_space_bytes = plan.address_space_bytes - 1});
      ExpectFoundIsLongest(model, plan,
                           {.address_space_bytes = plan.address_space_bytes - 300'000});
    }
  }
}

TEST(FindFitting, FindsNothingWhereTheWeightsAloneAreTooLarge) {
  const MemoryPlan plan = Plan(Outline(), Options(1024, KvType::kF32));
  const auto found = FindFitting(Outline(), plan, {.resident_bytes = kMebibyte}, kProgram);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());
}

TEST(CheckFits, SaysNothingOfWhatFits) {
  const MemoryPlan plan = Plan(Outline(), Options(1024, KvType::kF32));
  EXPECT_TRUE(CheckFits(Outline(), plan, {}, kProgram));
  EXPECT_TRUE(CheckFits(Outline(), plan, {.resident_bytes = plan.peak_bytes()}, kProgram));
}

TEST(CheckFits, TellsTheBreakdownAndWhatWouldFit) {
  const ModelOutline model = Outline();
  const MemoryPlan plan = Plan(model, Options(4096, KvType::kF32));
  ASSERT_LT(plan.loading_bytes, plan.steady_bytes());
  const auto bounds = MemoryBounds::Of({}, std::midpoint(plan.loading_bytes, plan.steady_bytes()));
  const Status refused = CheckFits(model, plan, bounds, kProgram);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  const std::string& sentence = refused.error().message();
  EXPECT_THAT(sentence, HasSubstr(FormatBytes(plan.peak_bytes()) + " of memory"));
  EXPECT_THAT(sentence, HasSubstr("with a context of 4096 tokens in f32"));
  EXPECT_THAT(sentence,
              HasSubstr(FormatBytes(*bounds.resident_bytes) + " of " + bounds.resident_source));
  for (const MemoryLine& line : plan.lines) {
    EXPECT_THAT(sentence, HasSubstr(line.name() + " " + FormatBytes(line.bytes)));
  }
  EXPECT_THAT(sentence, HasSubstr("may reclaim " + FormatBytes(plan.mapped_bytes())));
  // What is offered fits a program that takes a little more when it is run again.
  platform::MemoryUsage larger = kProgram;
  larger.private_bytes += kMebibyte;
  const auto fitting = FindFitting(model, plan, bounds, larger);
  ASSERT_TRUE(fitting);
  ASSERT_EQ(fitting->size(), 3u);
  const Remedy& remedy = refused.error().remedy();
  EXPECT_EQ(remedy.kind, RemedyKind::kFitMemory);
  for (const MemoryPlanOptions& options : *fitting) {
    EXPECT_EQ(remedy.fitting_context_tokens[static_cast<size_t>(options.decoder.kv_type)],
              options.decoder.context_tokens);
  }
  EXPECT_THAT(sentence, Not(HasSubstr("ulimit")));
}

TEST(CheckFits, TellsOfAddressSpaceWhereThatIsShort) {
  const ModelOutline model = Outline();
  const MemoryPlan plan = Plan(model, Options(4096, KvType::kF32));
  const MemoryBounds bounds = {.address_space_bytes = plan.address_space_bytes - kMebibyte};
  const Status refused = CheckFits(model, plan, bounds, kProgram);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(refused.error().message(), HasSubstr("ulimit -v"));
  EXPECT_THAT(refused.error().message(), HasSubstr(FormatBytes(plan.address_space_bytes)));
  EXPECT_EQ(refused.error().remedy().kind, RemedyKind::kFitMemory);
  EXPECT_THAT(refused.error().remedy().fitting_context_tokens, Each(Gt(0u)));
}

TEST(CheckFits, SaysWhereNothingWouldFit) {
  const MemoryPlan plan = Plan(Outline(), Options(1024, KvType::kF32));
  const Status refused = CheckFits(Outline(), plan, {.resident_bytes = 1}, kProgram);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy().kind, RemedyKind::kFitMemory);
  EXPECT_THAT(refused.error().remedy().fitting_context_tokens, Each(0u));
}

}  // namespace
}  // namespace cria
