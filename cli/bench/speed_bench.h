#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/draft_comparison.h"
#include "cli/bench/speed_options.h"
#include "cli/bench/speed_test.h"
#include "core/platform.h"
#include "cria/error.h"
#include "decode/profile.h"
#include "llm/engine.h"

namespace cria::cli {

// The result of one test. Vectors have an entry for every repetition.
struct SpeedResult {
  SpeedTest test;
  double load_ms = 0.0;  // The engine's, which several tests share.
  std::chrono::system_clock::time_point begin;
  platform::ProcessorState first_state, last_state;

  std::vector<double> run_ns;
  // Time of only the matrix products of the run: parts of them alternate with parts of the run, so
  // that both are measured under the same conditions. Empty unless requested.
  std::vector<double> products_ns;
  // From the beginning of the prompt to the token chosen after it. Empty for tests that generate.
  std::vector<double> first_token_ms;
  // Bandwidth of reading the weights, right before the repetition.
  std::vector<double> read_gb_per_s, read_gb_per_s_one_thread;

  // Bytes of weights, which the tokens of several sequences share, and of keys and values at the
  // mean position. Absent for a prompt and with drafts, where a number of tokens that varies shares
  // them.
  std::optional<double> bytes_per_token;
  // Pages that the sequences hold at the end; a shared page is counted once. Absent with drafts.
  std::optional<size_t> kv_pages;
  std::optional<Profile> profile;      // Over all of run_ns.
  std::optional<DraftFigures> drafts;  // run_ns are the times with drafts.
};

// Runs every test: fills the cache to its depth, runs the test once without counting, and then the
// repetitions, each from the same depth. If the engine has drafts, only tests that generate are
// run, each repetition also without drafts. Ctrl-C stops it with kCancelled.
Status RunSpeedBench(const SpeedOptions& options,
                     const std::function<void(const Engine&, const SpeedResult&)>& on_result);

}  // namespace cria::cli
