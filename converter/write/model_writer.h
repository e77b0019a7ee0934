#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "converter/progress.h"
#include "converter/quantize/row_quantizer.h"
#include "converter/write/file_plan.h"
#include "converter/write/metadata.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/checksum.h"

namespace cria {

struct WrittenModel {
  Digest digest = {};
  std::vector<QuantizationError> errors;  // One for each tensor of the plan.
};

// Writes a model file (schema/README.md) and sets the plan's offsets and checksums. The file
// appears under `path` only when it is complete and on disk.
Result<WrittenModel> WriteModel(const ModelDescription& description, FilePlan& plan,
                                const std::filesystem::path& path, const ThreadPool& threads,
                                const ProgressCallback& progress);

}  // namespace cria
