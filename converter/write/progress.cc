#include "converter/write/progress.h"

#include <algorithm>

namespace cria {

ProgressCallback ProgressOfStep(const ProgressCallback& progress, ConvertStep step, double begin,
                                double end) {
  if (progress == nullptr) return {};
  return [progress, step, begin, end](const ConvertProgress& part) {
    constexpr double kTotal = 1e9;
    const double done = part.total_weights == 0 ? 1.0
                                                : static_cast<double>(part.done_weights) /
                                                      static_cast<double>(part.total_weights);
    return progress({part.tensor,
                     static_cast<uint64_t>(kTotal * (begin + (end - begin) * std::min(done, 1.0))),
                     static_cast<uint64_t>(kTotal), step});
  };
}

}  // namespace cria
