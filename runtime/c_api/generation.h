#pragma once

#include <cstdint>

#include "c_api/handles.h"
#include "llm/completion.h"
#include "llm/sampler.h"
#include "llm/stop_strings.h"

namespace cria::c_api {

// A caller's options for generating, with what is made from them.
struct Generation {
  Sampler sampler;
  StopStrings stop_strings;
  uint32_t max_tokens;
  uint32_t keep_tokens;
  WhenFull when_full;
  bool parse_special;
};

// Null means the defaults. Keeps no pointer of the caller.
Result<Generation> MakeGeneration(const LoadedModel& model, const cria_generation_options* options);

}  // namespace cria::c_api
