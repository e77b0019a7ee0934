#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"
#include "decode/decoder_memory.h"
#include "model/model_outline.h"

namespace cria {

// What is asked of a model.
struct MemoryPlanOptions {
  DecoderOptions decoder;
  size_t num_threads = 1;
  // A pool of its own for several tokens at once; 0: there is none, and the other runs them too.
  size_t num_batch_threads = 0;
  // Packed weights are held in private memory instead of being mapped.
  bool weights_in_memory = false;
};

// Who can take a page away.
enum class MemoryKind : uint8_t {
  kPrivate,  // Nobody, short of swapping.
  kMapped,   // The kernel may drop it and read it from its file again.
};

struct MemoryLine {
  std::string name;
  MemoryKind kind = MemoryKind::kPrivate;
  uint64_t bytes = 0;
};

// What a model will take, part by part, told from its metadata before anything is loaded. Bytes are
// those of resident pages once a conversation has filled the context.
struct MemoryPlan {
  MemoryPlanOptions options;
  std::vector<MemoryLine> lines;
  // Resident for a moment while weights are packed or layers created, beside the program and what
  // is loaded by then.
  uint64_t loading_bytes = 0;
  // Of all mappings at most, whether their pages are touched or not: what RLIMIT_AS bounds.
  uint64_t address_space_bytes = 0;

  uint64_t private_bytes() const { return BytesOf(MemoryKind::kPrivate); }
  // What the kernel may reclaim when memory is short, at the price of reading it again.
  uint64_t mapped_bytes() const { return BytesOf(MemoryKind::kMapped); }
  uint64_t steady_bytes() const { return private_bytes() + mapped_bytes(); }
  uint64_t peak_bytes() const;

 private:
  uint64_t BytesOf(MemoryKind kind) const;
};

// `program` is what the process uses before a model is loaded. Fails only where XNNPACK does not
// run.
Result<MemoryPlan> PlanMemory(const ModelOutline& model, const MemoryPlanOptions& options,
                              const platform::MemoryUsage& program);

// Bounds of what a process may use; absent where there is none.
struct MemoryBounds {
  std::optional<uint64_t> resident_bytes;
  std::string resident_source;  // Whose it is, for a sentence.
  std::optional<uint64_t> address_space_bytes;

  // The least of the system's own limits and `limit_bytes`.
  static MemoryBounds Of(const platform::MemoryLimits& system, std::optional<uint64_t> limit_bytes);
};

bool Fits(const MemoryPlan& plan, const MemoryBounds& bounds);

// Options that differ from the plan's in context or KV type and fit: the longest context for its KV
// type, and for every smaller type the same context or the longest. Empty where nothing does.
Result<std::vector<MemoryPlanOptions>> FindFitting(const ModelOutline& model,
                                                   const MemoryPlan& plan,
                                                   const MemoryBounds& bounds,
                                                   const platform::MemoryUsage& program);

// An error with the breakdown and what would fit, if the plan does not fit the bounds.
Status CheckFits(const ModelOutline& model, const MemoryPlan& plan, const MemoryBounds& bounds,
                 const platform::MemoryUsage& program);

}  // namespace cria
