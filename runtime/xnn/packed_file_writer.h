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

// What was written.
struct WrittenPack {
  uint64_t file_bytes = 0;
  // Of the embedding table, where the file has it in both forms: its rows are read by themselves,
  // which packed weights do not allow, and as a tied output head it is multiplied by.
  uint64_t doubled_bytes = 0;
};

// The kind of processor that weights are packed for.
struct PackTarget {
  std::string processor;  // For people.
  uint64_t layout_fingerprint = 0;
};
// The one that this is.
Result<PackTarget> ThisProcessor();
// `known`, where this processor packs the model's matrices as that one does, so that it can do so
// in its place.
Result<std::optional<PackTarget>> TargetInPlaceOf(const KnownLayout& known, const ModelFile& model);

// Packs the model's weights into a file of their own, which appears under `path` when it is whole,
// in place of what was there. Takes at most PackingPeakBytes of private memory.
Result<WrittenPack> WritePackedFile(const ModelFile& model, const std::string& path,
                                    const PackTarget& target, const ThreadPool& pool,
                                    const PackingProgress& progress);

// Writes the model anew, with packed weights in place of the portable ones; the norms and the
// embedding table stay as they are. The model keeps its digest.
Result<WrittenPack> WriteStandaloneFile(const ModelFile& model, const std::string& path,
                                        const PackTarget& target, const ThreadPool& pool,
                                        const PackingProgress& progress);

// Private memory that packing these matrices takes, beside what the process has.
uint64_t PackingPeakBytes(std::span<const TensorLayout> matrices, size_t num_threads);

}  // namespace cria::xnn
