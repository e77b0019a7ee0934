// Plans: information about a model that is not loaded.

#include <gtest/gtest.h>

#include <string>

#include "c_api/c_api_fixture.h"

namespace cria_test {
namespace {

PlanPtr MakePlan(const cria_model_options& options) {
  cria_plan* plan = nullptr;
  EXPECT_EQ(cria_plan_create(&options, &plan), CRIA_OK) << cria_error_message();
  return PlanPtr(plan);
}

cria_plan_totals TotalsOf(const PlanPtr& plan) {
  cria_plan_totals totals = CRIA_PLAN_TOTALS_INIT;
  EXPECT_EQ(cria_plan_get_totals(plan.get(), &totals), CRIA_OK) << cria_error_message();
  return totals;
}

uint64_t BytesOf(const PlanPtr& plan, const std::string& part) {
  for (size_t i = 0; i < cria_plan_num_parts(plan.get()); ++i) {
    uint64_t bytes = 0;
    if (cria_plan_get_part(plan.get(), i, &bytes, nullptr) == part) return bytes;
  }
  ADD_FAILURE() << "no part " << part;
  return 0;
}

TEST(PlanTest, TellsOfTheModelWhatTheModelTells) {
  const cria_model_options options = DemoOptions();
  cria_model_info planned = CRIA_MODEL_INFO_INIT;
  cria_model_info loaded = CRIA_MODEL_INFO_INIT;
  const PlanPtr plan = MakePlan(options);
  const ModelPtr model = LoadModel(options);
  ASSERT_EQ(cria_plan_get_info(plan.get(), &planned), CRIA_OK);
  ASSERT_EQ(cria_model_get_info(model.get(), &loaded), CRIA_OK);
  EXPECT_STREQ(planned.name, loaded.name);
  EXPECT_EQ(planned.num_parameters, 3148032u);
  EXPECT_EQ(planned.num_parameters, loaded.num_parameters);
  EXPECT_EQ(planned.file_bytes, loaded.file_bytes);
  EXPECT_EQ(planned.vocab_size, 1536u);
  EXPECT_EQ(loaded.vocab_size, 1536u);
  EXPECT_EQ(planned.max_context_tokens, 512u);
  EXPECT_EQ(planned.context_tokens, loaded.context_tokens);
  EXPECT_EQ(loaded.num_threads, 1u);
  EXPECT_EQ(loaded.num_batch_threads, 1u);
}

TEST(PlanTest, TheKvCacheIsAsLargeAsItsTypeAndContextMakeIt) {
  cria_model_options options = DemoOptions();
  options.context_tokens = 512;
  const uint64_t by_default = BytesOf(MakePlan(options), "KV cache");
  options.kv_type = CRIA_KV_F32;
  const uint64_t f32 = BytesOf(MakePlan(options), "KV cache");
  options.kv_type = CRIA_KV_F16;
  EXPECT_EQ(BytesOf(MakePlan(options), "KV cache"), f32 / 2);
  options.kv_type = CRIA_KV_INT8;
  EXPECT_EQ(BytesOf(MakePlan(options), "KV cache"), by_default);
  options.kv_type = CRIA_KV_MODEL;
  EXPECT_EQ(BytesOf(MakePlan(options), "KV cache"), by_default);
  EXPECT_LT(by_default, f32 / 3);
  options.context_tokens = 256;
  options.kv_type = CRIA_KV_F16;
  EXPECT_EQ(BytesOf(MakePlan(options), "KV cache"), f32 / 4);
  options.kv_type = CRIA_KV_INT8;
  EXPECT_LT(BytesOf(MakePlan(options), "KV cache"), f32 / 4);
}

TEST(PlanTest, PackedWeightsAreMappedWhereThereIsAFolderForThem) {
  cria_model_options options = DemoOptions();
  const cria_plan_totals in_memory = TotalsOf(MakePlan(options));
  options.pack_folder = "/tmp";
  const cria_plan_totals mapped = TotalsOf(MakePlan(options));
  EXPECT_GT(in_memory.private_bytes, mapped.private_bytes + 3'000'000);
  EXPECT_LT(in_memory.mapped_bytes + 3'000'000, mapped.mapped_bytes);
  EXPECT_GE(mapped.address_space_bytes, mapped.peak_bytes);
}

TEST(PlanTest, SaysWhatWouldFitALimit) {
  cria_model_options options = DemoOptions();
  options.pack_folder = "/tmp";
  options.kv_type = CRIA_KV_F32;
  options.context_tokens = 512;
  options.memory_limit_bytes = TotalsOf(MakePlan(options)).peak_bytes * 2;
  EXPECT_EQ(cria_plan_check(MakePlan(options).get()), CRIA_OK);
  // Less than with any context.
  options.memory_limit_bytes = 1'000'000;
  ExpectFailure(cria_plan_check(MakePlan(options).get()), CRIA_ERROR_OUT_OF_MEMORY, "KV cache");
  ExpectFailure(cria_plan_check(MakePlan(options).get()), CRIA_ERROR_OUT_OF_MEMORY,
                "no context would fit; ignore_memory_limits loads it all the same");
  // Enough for a shorter context. The plans so far have mapped code of this program, which counts.
  options.memory_limit_bytes = 0;
  const uint64_t peak_bytes = TotalsOf(MakePlan(options)).peak_bytes;
  options.context_tokens = 64;
  const uint64_t shorter_bytes = TotalsOf(MakePlan(options)).peak_bytes;
  ASSERT_LT(shorter_bytes + 500'000, peak_bytes);
  options.context_tokens = 512;
  options.memory_limit_bytes = peak_bytes - 250'000;
  ExpectFailure(cria_plan_check(MakePlan(options).get()), CRIA_ERROR_OUT_OF_MEMORY,
                "what would fit: context_tokens ");
}

TEST(PlanTest, PartsEnd) {
  const PlanPtr plan = MakePlan(DemoOptions());
  const size_t parts = cria_plan_num_parts(plan.get());
  EXPECT_GT(parts, 5u);
  EXPECT_NE(cria_plan_get_part(plan.get(), parts - 1, nullptr, nullptr), nullptr);
  EXPECT_EQ(cria_plan_get_part(plan.get(), parts, nullptr, nullptr), nullptr);
  EXPECT_EQ(cria_plan_get_part(plan.get(), SIZE_MAX, nullptr, nullptr), nullptr);
}

}  // namespace
}  // namespace cria_test
