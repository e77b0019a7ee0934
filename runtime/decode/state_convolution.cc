#include "decode/state_convolution.h"

#include <algorithm>
#include <array>

#include "core/numeric.h"
#include "ops/swiglu.h"

namespace cria {
namespace {

// Threads take so many channels at once: a few cache lines of every row.
constexpr size_t kConvTaskChannels = 64;
// What SiLU is multiplied by.
constexpr auto kOnes = [] {
  std::array<float, kConvTaskChannels> ones;
  ones.fill(1.0f);
  return ones;
}();

}  // namespace

KeptRows StateConvolution::KeptUpdates(size_t place) const {
  const KeptRows inputs = KeptInputs(place);
  return {.rows = inputs.rows + (inputs.num_earlier + states.max_rows) * inputs.channels,
          .channels = update_channels};
}

void StateConvolution::Run(const BatchPlacement& placement, size_t rows,
                           const Workers& workers) const {
  const size_t num_tasks = DivideRoundingUp(taps.channels, kConvTaskChannels);
  ForEachRow(workers.PoolFor(rows), num_tasks, rows * kConvTaskChannels, [&](size_t task) {
    const size_t begin = task * kConvTaskChannels;
    const size_t end = std::min(taps.channels, begin + kConvTaskChannels);
    size_t first = 0;
    for (const StateRun& run : placement.states()) {
      RunChannels(run, first, begin, end);
      first += run.num_tokens;
    }
  });
}

void StateConvolution::RunChannels(const StateRun& run, size_t first, size_t begin,
                                   size_t end) const {
  float* const from = input + first * input_stride;
  float* const to = output + first * output_stride;
  const KeptRows kept = KeptInputs(run.place);
  BeginKeptRows(kept, run, begin, end);
  ops::Convolution(taps,
                   {.input = from,
                    .input_stride = input_stride,
                    .output = to,
                    .output_stride = output_stride,
                    .num_rows = run.num_tokens,
                    .earlier = kept.EarlierThan(run)},
                   begin, end);
  for (size_t row = 0; row < run.num_tokens; ++row) {
    float* const convolved = to + row * output_stride + begin;
    ops::SwiGlu(convolved, kOnes.data(), end - begin, convolved);
  }
  MoveKeptRows(kept, run, from, input_stride, begin, end);
}

void StateConvolution::KeepUpdates(const BatchPlacement& placement, const float* updates) const {
  for (const StateRun& run : placement.states()) {
    MoveKeptRows(KeptUpdates(run.place), run, updates, output_stride, 0, update_channels);
    updates += run.num_tokens * output_stride;
  }
}

std::span<float> StateConvolution::CopyState(size_t place, size_t num_rows,
                                             std::span<float> scratch) const {
  const std::span<float> copy = scratch.first(states.size.state_elements);
  std::copy_n(states.State(place), copy.size(), copy.begin());
  const KeptRows inputs = KeptInputs(place);
  std::copy_n(inputs.rows + num_rows * inputs.channels, inputs.num_earlier * inputs.channels,
              copy.begin() + static_cast<ptrdiff_t>(matrix_elements));
  return copy;
}

}  // namespace cria
