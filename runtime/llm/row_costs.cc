#include "llm/row_costs.h"

#include <algorithm>
#include <limits>

namespace cria {
namespace {

// How much of the difference from what was expected goes into the unit and into the relation.
constexpr double kUnitShare = 0.125;
constexpr double kRelativeShare = 0.25;
// A single Forward that was interrupted counts at most as one that took twice as long.
constexpr double kMaxSurprise = 2.0;
// What is not run becomes cheaper by this share of what it costs more than the fewest rows, so that
// it is tried again after some hundreds of Forwards.
constexpr double kForgetting = 1.0 / 1024;

}  // namespace

void RowCosts::Learn(size_t rows, double seconds) {
  if (rows == 0 || rows > kMaxRows || !(seconds > 0.0)) return;
  if (unit_ == 0.0) unit_ = seconds;
  double& relative = relative_[rows];
  if (relative == 0.0) {
    relative = seconds / unit_;
    return;
  }
  const double surprise =
      std::clamp(seconds / (unit_ * relative), 1.0 / kMaxSurprise, kMaxSurprise) - 1.0;
  unit_ *= 1.0 + kUnitShare * surprise;
  relative *= 1.0 + kRelativeShare * surprise;
  const double* const known = std::ranges::find_if(relative_, [](double r) { return r > 0.0; });
  const double least = *known;
  for (double& other : relative_) {
    if (&other != &relative && other > least) other -= (other - least) * kForgetting;
  }
}

double RowCosts::Seconds(size_t rows) const {
  if (rows > kMaxRows) return std::numeric_limits<double>::infinity();
  size_t below = rows;
  while (below > 0 && relative_[below] == 0.0) --below;
  if (below == 0) return 0.0;
  size_t above = rows;
  while (above <= kMaxRows && relative_[above] == 0.0) ++above;
  double relative = relative_[below];
  if (below < rows && above <= kMaxRows) {
    const double share = static_cast<double>(rows - below) / static_cast<double>(above - below);
    relative += share * (relative_[above] - relative_[below]);
  }
  // More rows take no less time; if they did, others used the processor meanwhile.
  for (size_t fewer = 1; fewer <= below; ++fewer) relative = std::max(relative, relative_[fewer]);
  return unit_ * relative;
}

}  // namespace cria
