#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/model_file.h"
#include "xnn/packed_weights.h"

namespace cria::xnn {

// Receives the packed slices of one matrix, in order.
class PackingSink {
 public:
  virtual ~PackingSink() = default;
  // Returns zeros into which a slice is packed, aligned to kPackedAlignment.
  virtual Result<std::span<std::byte>> Reserve(uint64_t bytes) = 0;
  virtual Status Take(std::span<const std::byte> packed) = 0;
};

// Packs the matrices of a model on all threads, each matrix in slices of rows.
class Packer {
 public:
  // Private memory for a slice; each thread packs one slice at a time.
  static constexpr uint64_t kMaxSliceBytes = uint64_t{4} << 20;

  // The references must outlive the packer.
  Packer(const ModelFile& model, const ThreadPool& pool, const PackingProgress& progress);

  // Calls `pack_matrix(index)` for each of MultipliedMatrices, beginning with the largest, so that
  // at the end no thread has a large one left. If several fail, returns the error of the first
  // matrix.
  Status ForEachMatrix(const std::function<Status(size_t index)>& pack_matrix);

  // Packs one matrix into `sink` and compares the checksum of its portable form.
  Status PackMatrix(size_t index, PackingSink& sink);

 private:
  // The packed slice is followed by `padding` zeros.
  Status PackSlice(const StoredTensor& tensor, const platform::FileMapping& scales,
                   size_t first_row, size_t rows, uint64_t padding, Checksum64& checksum,
                   PackingSink& sink);
  Status Report(const StoredTensor& tensor, uint64_t bytes);

  const ModelFile& model_;
  const ThreadPool& pool_;
  const PackingProgress& progress_;
  const std::vector<const StoredTensor*> matrices_;
  uint64_t total_bytes_ = 0;

  std::mutex mutex_;
  uint64_t done_bytes_ = 0;
};

}  // namespace cria::xnn
