#pragma once

#include "core/platform.h"
#include "cria/cria.h"
#include "cria/error.h"
#include "llm/engine.h"
#include "model/model_file.h"

namespace cria::c_api {

// A copy of the caller's options in which every field is set.
Result<cria_model_options> ReadModelOptions(const cria_model_options* options);

// Opens the file, or the part of a file, that the options name.
Result<platform::File> OpenSource(const cria_model_options& options);

// The engine's options, without the callbacks.
Result<EngineOptions> ToEngineOptions(const cria_model_options& options);

// Information about a model that is, or would be, loaded with these options. `name` must end with a
// zero byte and outlive the result.
cria_model_info DescribeModel(const ModelFile& file, const MemoryPlanOptions& options,
                              const char* name);

}  // namespace cria::c_api
