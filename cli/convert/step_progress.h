#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "converter/write/progress.h"

namespace cria::cli {

// Joins the progress of a conversion's steps to that of the whole, which never goes back.
class StepProgress {
 public:
  explicit StepProgress(const StepCosts& costs);

  struct Whole {
    uint64_t done = 0;
    uint64_t total = 0;
    // The part of `done` that took no time since the last report: a step that was not needed, or
    // the part of one that an earlier run had done.
    uint64_t skipped = 0;
    std::string item;  // "step 2 of 3, calibrating layers.0.qkv_proj"
  };
  Whole Update(const ConvertProgress& progress);

 private:
  // Where each step begins, and the last one ends.
  std::array<uint64_t, kNumConvertSteps + 1> begins_{};
  std::array<size_t, kNumConvertSteps> numbers_{};  // From 1 on; steps without cost have none.
  size_t num_steps_ = 0;
  size_t step_ = 0;        // The current one.
  bool is_begun_ = false;  // The current step has reported.
  uint64_t done_ = 0;
};

}  // namespace cria::cli
