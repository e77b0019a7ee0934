#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/platform.h"
#include "core/thread_pool.h"
#include "cria/error.h"
#include "model/model_file.h"
#include "model/packed_file.h"

namespace cria::xnn {

// Called with the bytes of portable weights that are packed, all bytes, and the matrix that was
// packed last; one call at a time, on any thread. False stops the packing with kCancelled.
using PackingProgress =
    std::function<bool(uint64_t done_bytes, uint64_t total_bytes, std::string_view matrix)>;

// Fails if the model's weights are packed already.
Status CheckIsPortable(const ModelFile& model);

// A model's packed weights, mapped or in private memory.
class PackedWeights {
 public:
  // Maps a file, whose pages are read when they are used and may be dropped at any time. Fails with
  // kUnsupported if it is for another model or for another layout than this processor's.
  static Result<PackedWeights> Map(const ModelFile& model, const PackedFile& file);

  // Packs into private memory.
  static Result<PackedWeights> PackInMemory(const ModelFile& model, const ThreadPool& pool,
                                            const PackingProgress& progress);

  // The packed bytes of each of MultipliedMatrices.
  std::span<const std::span<const std::byte>> matrices() const { return matrices_; }
  bool is_mapped() const { return !mapping_.bytes().empty(); }

 private:
  PackedWeights() = default;

  platform::FileMapping mapping_;
  platform::PageBlock block_;
  std::vector<std::span<const std::byte>> matrices_;
};

}  // namespace cria::xnn
