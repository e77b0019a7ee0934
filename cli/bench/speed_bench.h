#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/speed_test.h"
#include "core/platform.h"
#include "cria/error.h"
#include "decode/profile.h"
#include "llm/engine.h"

namespace cria::cli {

struct SpeedOptions {
  std::string model_path;
  EngineOptions engine;  // The number of threads is that of each test.
  // Every test is run with each of these, as llama-bench does.
  std::vector<size_t> threads = {0};
  std::vector<size_t> depths = {0};
  std::vector<size_t> prompt_tokens = {512};     // 0 stands for no test.
  std::vector<size_t> generated_tokens = {128};  // Likewise.
  size_t repetitions = 5;
  bool with_products = false;
  bool with_profile = false;
};

// What one test came to. Vectors have an entry for every repetition.
struct SpeedResult {
  SpeedTest test;
  double load_ms = 0.0;  // Of the engine, which several tests share.
  std::chrono::system_clock::time_point begin;
  platform::ProcessorState first_state, last_state;

  std::vector<double> run_ns;
  // The matrix products of the run alone, a stretch of them after each stretch of it, so that both
  // meet the same machine. Empty unless asked for.
  std::vector<double> products_ns;
  // From the prompt's beginning to the token chosen after it. Empty for generation.
  std::vector<double> first_token_ms;
  // Of reading the weights, right before the repetition.
  std::vector<double> read_gb_per_s, read_gb_per_s_one_thread;

  // Weights, and keys and values at the mean position. Absent for a prompt, whose tokens share
  // them.
  std::optional<double> bytes_per_token;
  std::optional<Profile> profile;  // Of all of run_ns.
};

// Runs every test: fills the cache to its depth, runs it once without counting, and then the
// repetitions, each from the same depth on. Ctrl-C stops it with kCancelled.
Status RunSpeedBench(const SpeedOptions& options,
                     const std::function<void(const Engine&, const SpeedResult&)>& on_result);

}  // namespace cria::cli
