#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace cria {

// The steps of a conversion that take long, in their order. Converting does not sample or verify
// itself; the program does so before and after it.
enum class ConvertStep : uint8_t {
  kSampling,     // A text to calibrate with.
  kRotating,     // Whether rotating the hidden state is better.
  kChoosing,     // The scheme of each matrix.
  kCalibrating,  // The codes of each matrix.
  kMeasuring,    // What each matrix moves.
  kWriting,      // The model file.
  kVerifying,
};
inline constexpr size_t kNumConvertSteps = 7;

struct ConvertProgress {
  std::string_view tensor;  // What is being done, such as the tensor that is being stored.
  uint64_t done_weights;    // In this step; in any unit, except while writing.
  uint64_t total_weights;
  ConvertStep step = ConvertStep::kWriting;
};

// Called on the converting thread several times a second; returning false cancels. May be empty.
using ProgressCallback = std::function<bool(const ConvertProgress&)>;

// Reports another operation's progress as this step's, from the share `begin` of it to `end`. The
// callback is copied.
ProgressCallback ProgressOfStep(const ProgressCallback& progress, ConvertStep step,
                                double begin = 0.0, double end = 1.0);

// How long each step takes, in relation to the others; 0 if there is no such step.
using StepCosts = std::array<double, kNumConvertSteps>;

}  // namespace cria
