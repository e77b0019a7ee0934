#include "cli/convert/step_progress.h"

#include <algorithm>
#include <numeric>

#include "core/format.h"

namespace cria::cli {

StepProgress::StepProgress(const StepCosts& costs) {
  constexpr double kTotal = 1e12;
  const double sum = std::accumulate(costs.begin(), costs.end(), 0.0);
  double end = 0.0;
  for (size_t step = 0; step < costs.size(); ++step) {
    end += costs[step];
    begins_[step + 1] = sum > 0.0 ? static_cast<uint64_t>(kTotal * end / sum) : 0;
    if (costs[step] > 0.0) numbers_[step] = ++num_steps_;
  }
}

StepProgress::Whole StepProgress::Update(const ConvertProgress& progress) {
  const auto step = static_cast<size_t>(progress.step);
  Whole whole = {.total = begins_.back()};
  if (step > step_) {
    // The last report of a step may be of the beginning of its last part.
    const size_t first_skipped = is_begun_ ? step_ + 1 : step_;
    whole.skipped = begins_[step] - begins_[first_skipped];
    done_ = std::max(done_, begins_[step]);
    step_ = step;
    is_begun_ = false;
  }
  const double fraction = progress.total_weights == 0
                              ? 1.0
                              : static_cast<double>(progress.done_weights) /
                                    static_cast<double>(progress.total_weights);
  const uint64_t cost = begins_[step + 1] - begins_[step];
  const auto of_step = static_cast<uint64_t>(std::min(fraction, 1.0) * static_cast<double>(cost));
  if (!is_begun_) whole.skipped += of_step;
  is_begun_ = true;
  done_ = std::max(done_, begins_[step] + of_step);
  whole.done = done_;
  whole.item = num_steps_ < 2 || numbers_[step] == 0
                   ? std::string(progress.tensor)
                   : Format("step {} of {}, {}", numbers_[step], num_steps_, progress.tensor);
  return whole;
}

}  // namespace cria::cli
