#pragma once

#include <array>
#include <cmath>

#include "model/config.h"

namespace cria {

// The numbers of HiddenAct::kXielu of a layer, from those of a checkpoint: the alphas are trained
// as arguments of ln(1 + e^x), which keeps them positive.
inline std::array<float, kXieluNumbers> XieluNumbersOf(double alpha_p, double alpha_n, float beta,
                                                       float eps) {
  const auto soft_plus = [](double x) { return x > 30.0 ? x : std::log1p(std::exp(x)); };
  return {static_cast<float>(soft_plus(alpha_p)), static_cast<float>(beta + soft_plus(alpha_n)),
          beta, eps};
}

}  // namespace cria
