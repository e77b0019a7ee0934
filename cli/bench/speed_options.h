#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench/speed_test.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

struct SpeedOptions {
  std::string model_path;
  EngineOptions engine;  // Its numbers of threads are replaced for each test.
  // Every test is run with each of these numbers, as in llama-bench.
  std::vector<size_t> threads = {0};
  std::vector<size_t> depths = {0};
  std::vector<size_t> prompt_tokens = {512};     // 0: no such test.
  std::vector<size_t> generated_tokens = {128};  // 0: no such test.
  // With several, only tests that generate are run: one token of each sequence in every Forward.
  std::vector<size_t> sequences = {1};
  // The text that the tests begin with; empty: made-up tokens.
  std::string text_path;
  size_t repetitions = 5;
  bool with_products = false;
  bool with_profile = false;
};

// Fails with kUsage if the options leave no test or exclude each other.
Status CheckTests(const SpeedOptions& options);

// For each depth, prompts come first. With drafts, there are no prompts, which do not differ.
std::vector<SpeedTest> Tests(const SpeedOptions& options);

// The context that the largest test needs; `longest` is the model's maximum.
Result<size_t> ContextTokens(const SpeedOptions& options, size_t longest);

// What the tests read: made-up tokens, whose first ones are those of the file if there is one.
Result<std::vector<int32_t>> TestTokens(const SpeedOptions& options, const Engine& engine);

}  // namespace cria::cli
