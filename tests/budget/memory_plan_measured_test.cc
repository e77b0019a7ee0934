// The plan against what the programs really take.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "budget/generated_model.h"
#include "llm/engine.h"
#include "llm/measure/perplexity.h"
#include "support/mebibyte.h"
#include "support/sanitizers.h"
#include "support/unwrap.h"

namespace cria {
namespace {

using budget::GeneratedModel;
using support::kMebibyte;

// Meets so many states that old ones must give up their memory.
void Exhaust(Constraint& constraint) {
  Unwrap(constraint.Set({grammar::ConstraintKind::kRegex, "[a-p]{0,3000}([a-f]{7}|[c-k]{9}x)*"}));
  for (size_t i = 0; i < 2500; ++i) {
    const Constraint::Next next = Unwrap(constraint.FindNext({}, SIZE_MAX));
    int32_t first = -1;
    next.mask.ForEach(32'000, [&](size_t id) {
      if (first < 0) first = static_cast<int32_t>(id);
    });
    Unwrap(constraint.Accept(first));
  }
}

void ExpectMeasuredAsPlanned(const GeneratedModel& model, const char* name,
                             const std::vector<std::string>& options) {
  std::vector<std::string> arguments = {"--memory", "-t", "2"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const nlohmann::json bench = model.Json("bench", arguments);
  const nlohmann::json& plan = bench["plan"];
  const nlohmann::json& last = bench["measured"].back();

  const uint64_t planned = plan["private_bytes"];
  const uint64_t measured = last["private_bytes"];
  const uint64_t mapped = last["file_mapped_bytes"];
  const uint64_t peak = last["peak_resident_bytes"];
  const uint64_t virtual_peak = last["peak_virtual_bytes"];
  std::string line = name;
  for (const std::string& option : options) line += " " + option;
  std::printf(
      "%-36s private %10llu planned %10llu (%+6.2f%%) | mapped %9llu planned %9llu | peak "
      "%10llu planned %10llu | virtual %10llu planned %10llu\n",
      line.c_str(), static_cast<unsigned long long>(measured),
      static_cast<unsigned long long>(planned),
      100.0 * (static_cast<double>(measured) / static_cast<double>(planned) - 1.0),
      static_cast<unsigned long long>(mapped), plan["mapped_bytes"].get<unsigned long long>(),
      static_cast<unsigned long long>(peak), plan["peak_bytes"].get<unsigned long long>(),
      static_cast<unsigned long long>(virtual_peak),
      plan["address_space_bytes"].get<unsigned long long>());

  const double tolerance =
      std::max(0.03 * static_cast<double>(planned), static_cast<double>(2 * kMebibyte));
  EXPECT_NEAR(static_cast<double>(measured), static_cast<double>(planned), tolerance) << line;
  EXPECT_GE(plan["peak_bytes"].get<uint64_t>() + 2 * kMebibyte, peak) << line;
  EXPECT_GE(plan["address_space_bytes"].get<uint64_t>(), virtual_peak) << line;
  // What is mapped, the plan may only say too much of: a file's pages count once they are touched.
  EXPECT_LE(mapped, plan["mapped_bytes"].get<uint64_t>() + 2 * kMebibyte) << line;
}

TEST(MemoryPlanMeasured, TheOneMillionShape) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  const GeneratedModel model({"--shape", "stories1m", "--max-position-embeddings", "2048"},
                             {"--weights", "int4"});
  for (const char* context : {"64", "512", "2048"}) {
    for (const char* kv : {"f32", "int8"}) {
      ExpectMeasuredAsPlanned(model, "1M", {"-c", context, "--kv", kv});
    }
  }
  ExpectMeasuredAsPlanned(model, "1M", {"-c", "2048", "--kv", "f16"});
  ExpectMeasuredAsPlanned(model, "1M", {"-c", "512", "--kv", "f32", "--no-pack-cache"});
  ExpectMeasuredAsPlanned(model, "1M", {"-c", "1", "--kv", "f32"});
  ExpectMeasuredAsPlanned(model, "1M", {"-c", "2048", "--kv", "int8", "-b", "1024"});
}

TEST(MemoryPlanMeasured, TheFifteenMillionShape) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  const GeneratedModel model({"--shape", "stories15m", "--max-position-embeddings", "1024"},
                             {"--weights", "int8"});
  // The first packs the weights, the others map them.
  for (const char* context : {"128", "512", "1024"}) {
    for (const char* kv : {"f16", "int8"}) {
      ExpectMeasuredAsPlanned(model, "15M", {"-c", context, "--kv", kv});
    }
  }
  ExpectMeasuredAsPlanned(model, "15M", {"-c", "1024", "--kv", "f32"});
  ExpectMeasuredAsPlanned(model, "15M", {"-c", "1024", "--kv", "f16", "--no-pack-cache"});
}

// Drafts have rows of logits and a table, and the draft model has what every model has.
TEST(MemoryPlanMeasured, Drafts) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  const GeneratedModel model({"--shape", "stories15m"}, {"--weights", "int8"});
  const std::vector<std::string> ngrams = {"-c", "256", "--kv", "int8", "--draft-ngram", "3"};
  ExpectMeasuredAsPlanned(model, "15M", ngrams);
  std::vector<std::string> both = ngrams;
  both.insert(both.end(), {"-md", model.path(), "--draft-max", "16"});
  ExpectMeasuredAsPlanned(model, "15M", both);
}

// The table of tokens and the memory of two constraints, all of which is used before it is full.
TEST(MemoryPlanMeasured, Constraints) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  const GeneratedModel model({"--shape", "stories15m"}, {"--weights", "int8"});
  const auto measure = [&](size_t max_constraints, MemoryPlan& plan) {
    EngineOptions options = {
        .num_threads = 2, .context_tokens = 256, .max_constraints = max_constraints};
    options.packing.cache_folder = model.path() + "-packed";
    const auto engine = Unwrap(Engine::Load(model.path(), options));
    plan = engine->memory_plan();
    std::vector<std::unique_ptr<Constraint>> constraints;
    for (size_t i = 0; i < max_constraints; ++i) {
      constraints.push_back(Unwrap(engine->NewConstraint()));
      Exhaust(*constraints.back());
    }
    return platform::ReadMemoryUsage().private_bytes;
  };
  MemoryPlan without, with;
  measure(0, without);  // Packs the weights.
  const uint64_t measured_without = measure(0, without);
  const uint64_t measured_with = measure(2, with);
  const uint64_t planned = with.private_bytes() - without.private_bytes();
  const uint64_t measured = measured_with - measured_without;
  std::printf("two constraints: private %llu, planned %llu\n",
              static_cast<unsigned long long>(measured), static_cast<unsigned long long>(planned));
  EXPECT_GT(planned, kMebibyte);
  EXPECT_LE(measured, planned + kMebibyte);
  EXPECT_GE(measured, planned / 2);
}

// Portable weights in f32 are the largest that packing reads; the plan's peak is that of loading.
TEST(MemoryPlanMeasured, LoadingIsThePeak) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  const GeneratedModel model({"--shape", "stories15m"}, {"--weights", "f32"});
  ExpectMeasuredAsPlanned(model, "15M f32", {"-c", "64", "--kv", "int8"});
  ExpectMeasuredAsPlanned(model, "15M f32", {"-c", "64", "--kv", "int8"});
  ExpectMeasuredAsPlanned(model, "15M f32", {"-c", "64", "--kv", "int8", "--no-pack-cache"});
}

// The logits of 65 tokens at once are 8.3 MB; one row is 128 kB.
TEST(MemoryPlanMeasured, RowsOfLogits) {
  if (support::kHeapIsSanitized) GTEST_SKIP() << "the plan does not contain a sanitizer's memory";
  const GeneratedModel model({"--shape", "stories15m"}, {"--weights", "int8"});
  std::vector<int32_t> tokens(255);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 97 % 32'000);
  const auto measure = [&](uint64_t max_logit_bytes) {
    EngineOptions options = {
        .num_threads = 2, .context_tokens = 256, .max_logit_bytes = max_logit_bytes};
    options.packing.cache_folder = model.path() + "-packed";
    const auto engine = Unwrap(Engine::Load(model.path(), options));
    Unwrap(MeasurePerplexity(engine->decoder(), tokens, 1, 256, [](const Perplexity&) {}));
    const uint64_t planned = engine->memory_plan().private_bytes();
    const uint64_t measured = platform::ReadMemoryUsage().private_bytes;
    EXPECT_NEAR(static_cast<double>(measured), static_cast<double>(planned), 2.0 * kMebibyte);
    return planned;
  };
  const uint64_t one_row = measure(0);
  const uint64_t several = measure(kMeasuringLogitBytes);
  EXPECT_GT(several, one_row + 6 * kMebibyte);
  EXPECT_LT(several, one_row + 10'000'000);
}

}  // namespace
}  // namespace cria
