#pragma once

#include "core/platform.h"
#include "cria/cria.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "model/model_file.h"

namespace cria::c_api {

// The caller's options, all of them.
Result<cria_model_options> ReadModelOptions(const cria_model_options* options);

// The file, or the part of one, that the options name.
Result<platform::File> OpenSource(const cria_model_options& options);

// Without callbacks.
Result<EngineOptions> ToEngineOptions(const cria_model_options& options);

// What is known of a model that would be, or is, loaded with these options. `name` must end with a
// zero byte and outlive the result.
cria_model_info DescribeModel(const ModelFile& file, const MemoryPlanOptions& options,
                              const char* name);

}  // namespace cria::c_api
