#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/model_file.h"
#include "model/tensor_table.h"
#include "xnn/known_layouts.h"
#include "xnn/packed_weights.h"

namespace cria::xnn {

// The result of writing.
struct WrittenPack {
  uint64_t file_bytes = 0;
  // Bytes of the embedding table if the file has it in both forms: single rows are read from the
  // portable form, and the packed form is the tied output head.
  uint64_t doubled_bytes = 0;
};

// The kind of processor for which weights are packed.
struct PackTarget {
  std::string processor;  // For messages.
  uint64_t layout_fingerprint = 0;
};
// The processor that this program runs on.
Result<PackTarget> ThisProcessor();
// The target for a known processor, if this processor packs the model's matrices into the same
// bytes and so can pack for the known one; otherwise nothing.
Result<std::optional<PackTarget>> TargetInPlaceOf(const KnownLayout& known, const ModelFile& model);

// Packs the model's weights into a separate file, which appears under `path` when it is complete
// and replaces an existing one. Takes at most PackingPeakBytes of private memory.
Result<WrittenPack> WritePackedFile(const ModelFile& model, const std::string& path,
                                    const PackTarget& target, const ThreadPool& pool,
                                    const PackingProgress& progress);

// Like WritePackedFile, but if `path` is a symbolic link, the link itself is replaced.
Result<WrittenPack> ReplacePackedFile(const ModelFile& model, const std::string& path,
                                      const PackTarget& target, const ThreadPool& pool,
                                      const PackingProgress& progress);

// Writes the model with packed weights in place of the portable ones; the vectors and the embedding
// table do not change, and the model keeps its digest.
Result<WrittenPack> WriteStandaloneFile(const ModelFile& model, const std::string& path,
                                        const PackTarget& target, const ThreadPool& pool,
                                        const PackingProgress& progress);

// Additional private memory that packing these matrices takes.
uint64_t PackingPeakBytes(std::span<const TensorLayout> matrices, size_t num_threads);

}  // namespace cria::xnn
