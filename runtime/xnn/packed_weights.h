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

// Called with how many bytes of portable weights are packed, of how many, and the matrix that was
// last; one call at a time, from any thread. False stops the packing with kCancelled.
using PackingProgress =
    std::function<bool(uint64_t done_bytes, uint64_t total_bytes, std::string_view matrix)>;

// Refuses a model whose weights are packed already: there is nothing to pack.
Status CheckIsPortable(const ModelFile& model);

// A model's packed weights, wherever they are.
class PackedWeights {
 public:
  // Maps a file, whose pages are read when they are touched and may be dropped at any time. One of
  // another model, or for another layout than this processor's, is kUnsupported.
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
