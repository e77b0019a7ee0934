#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cli/bench/speed_test.h"
#include "cria/error.h"
#include "llm/engine.h"

namespace cria::cli {

// What drafts do in a test that generates. Vectors have an entry for every repetition.
struct DraftFigures {
  // Time of the same test without drafts, right before or behind the repetition.
  std::vector<double> undrafted_ns;
  // Sums over all repetitions.
  size_t drafted_tokens = 0;   // Drafts that the model ran.
  size_t accepted_tokens = 0;  // Drafts that it would have generated, too.
};

// Generates the same text without drafts and with them, each with a session of its own for every
// sequence, as a program does. The engine must have drafts, and `text`, which the tests begin with,
// one token more than the deepest test. What `stop` points at ends a run with kCancelled.
class DraftComparison {
 public:
  DraftComparison(Engine& engine, std::span<const int32_t> text, const std::atomic<bool>* stop)
      : engine_(engine), text_(text), stop_(stop) {}

  // The tokens of the KV cache that these tests need.
  static size_t ContextTokens(const SpeedTest& test);

  // Adds the times of another repetition. Which of both is run first changes each time.
  Status Run(const SpeedTest& test, std::vector<double>& drafted_ns, DraftFigures& figures);

 private:
  using Tokens = std::vector<int32_t>;

  struct Outcome {
    double nanoseconds = 0.0;
    std::vector<Tokens> texts;  // One for each sequence.
    size_t drafted_tokens = 0;
    size_t accepted_tokens = 0;
  };

  Result<Outcome> Generate(const SpeedTest& test, bool with_drafts);
  // Runs the token behind the depth and generates the others.
  Status Answer(const SpeedTest& test, Session& session, Tokens& text);

  Engine& engine_;
  const std::span<const int32_t> text_;
  const std::atomic<bool>* const stop_;
};

}  // namespace cria::cli
