#pragma once

#include <span>

#include "converter/quantize/scale_search.h"

namespace cria {

// SearchScale for a rule with a minimum.
ScaleFit SearchScaleAndMinimum(std::span<const float> values, const ScaleRule& rule);

}  // namespace cria
