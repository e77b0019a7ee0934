#pragma once

#include <cstdint>

#include "converter/convert.h"
#include "converter/write/progress.h"
#include "model/config.h"

namespace cria {

// What a program does around a conversion.
struct StepsAround {
  bool samples = false;
  bool verifies = false;
  bool writes = true;
};

// A tied head is counted once.
uint64_t CountParameters(const ModelConfig& config);

// Estimates how long each step of converting such a model takes. Everything is computed from the
// sizes of the model and of the text; a text that is shorter than what is wanted of it makes the
// steps that use it shorter than estimated.
StepCosts EstimateStepCosts(const ModelConfig& config, const ConvertOptions& options,
                            const StepsAround& around);

// The part of kSampling, or of kVerifying, that converts the checkpoint, before the text is run.
double ConvertingPartOfSampling(const ModelConfig& config, const ConvertOptions& options);
double ConvertingPartOfVerifying(const ModelConfig& config);

}  // namespace cria
