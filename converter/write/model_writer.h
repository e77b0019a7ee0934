#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "converter/quantize/row_quantizer.h"
#include "converter/write/file_plan.h"
#include "converter/write/metadata.h"
#include "converter/write/progress.h"
#include "core/output_file.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/checksum.h"

namespace cria {

struct WrittenModel {
  OutputFile file;  // Whole, but not committed.
  Digest digest = {};
  std::vector<QuantizationError> errors;  // One for each tensor of the plan.
};

// Writes a model file (schema/README.md) for `path` and sets the plan's offsets and checksums. The
// caller commits the file.
Result<WrittenModel> WriteModel(const ModelDescription& description, FilePlan& plan,
                                const std::filesystem::path& path, const ThreadPool& threads,
                                const ProgressCallback& progress);

// Writes what the file begins with again, after a field of the description that is written only if
// needed has changed, and sets the digest.
Status RewriteMetadata(const ModelDescription& description, const FilePlan& plan,
                       WrittenModel& written);

}  // namespace cria
