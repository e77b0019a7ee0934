#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"
#include "decode/decoder_memory.h"
#include "llm/drafting.h"
#include "llm/memory_line.h"
#include "model/model_outline.h"

namespace cria {

// The options that decide how much memory a model takes.
struct MemoryPlanOptions {
  DecoderOptions decoder;
  DraftOptions drafts;
  size_t max_constraints = 0;  // How many constraints there may be at once.
  size_t num_threads = 1;
  // Threads of a separate pool for several tokens at once; 0: there is no such pool.
  size_t num_batch_threads = 0;
  // Packed weights are held in private memory instead of being mapped.
  bool weights_in_memory = false;
  // The model that makes drafts; null: there is none.
  std::shared_ptr<const ModelOutline> draft_model;
  bool draft_weights_in_memory = false;
  // What the program will take besides, after the model is loaded, and the threads that it starts.
  std::vector<MemoryLine> other_memory;
  size_t other_threads = 0;
  // How many texts are chosen at once, and held besides the tokens of their sessions.
  size_t num_texts = 0;
};

// The options of the draft model: it has a context and sequences like the other model.
MemoryPlanOptions DraftModelOptions(const MemoryPlanOptions& options);

// The memory that a model will take, part by part, computed from its metadata. The figures are
// bytes of resident pages after a conversation has filled the context.
struct MemoryPlan {
  MemoryPlanOptions options;
  std::vector<MemoryLine> lines;
  // Resident only while weights are packed or layers are created, in addition to the program and
  // what is loaded before.
  uint64_t loading_bytes = 0;
  // Maximum size of all mappings, whether their pages are used or not: what RLIMIT_AS limits.
  uint64_t address_space_bytes = 0;

  uint64_t private_bytes() const { return BytesOf(MemoryKind::kPrivate); }
  // What the kernel may drop when memory is short; it has to be read again when it is used.
  uint64_t mapped_bytes() const { return BytesOf(MemoryKind::kMapped); }
  // What tokens choose from in addition: it takes the memory that is left.
  uint64_t on_demand_bytes() const { return BytesOf(MemoryKind::kOnDemand); }
  // Bytes of rows of tables in the file (kInFile) that one token reads; 0 if there are none.
  uint64_t token_row_bytes = 0;
  // Bytes of experts that one token chooses; 0 for a model without.
  uint64_t token_expert_bytes = 0;
  // How many of these a token is expected to read from the disk with so much memory, if tokens
  // choose all experts equally often.
  uint64_t DiskBytesPerToken(uint64_t resident_bytes) const;
  // The line of this part of the model or its program; 0 if there is none.
  uint64_t BytesOf(MemoryPart part) const;
  uint64_t steady_bytes() const { return private_bytes() + mapped_bytes(); }
  uint64_t peak_bytes() const;

 private:
  uint64_t BytesOf(MemoryKind kind) const;
};

// `program` is what the process uses before a model is loaded. Fails only if XNNPACK does not run
// on this processor.
Result<MemoryPlan> PlanMemory(const ModelOutline& model, const MemoryPlanOptions& options,
                              const platform::MemoryUsage& program);

// Limits for this process; absent if there is none.
struct MemoryBounds {
  std::optional<uint64_t> resident_bytes;
  std::string resident_source;  // Whose limit it is, for messages.
  std::optional<uint64_t> address_space_bytes;

  // The lower of the system's limits and `limit_bytes`.
  static MemoryBounds Of(const platform::MemoryLimits& system, std::optional<uint64_t> limit_bytes);
};

bool Fits(const MemoryPlan& plan, const MemoryBounds& bounds);

// Options that fit and differ from the plan's only in context or KV type: the longest context for
// its KV type, and for every smaller type the same context or the longest that fits. Empty if none
// fits.
Result<std::vector<MemoryPlanOptions>> FindFitting(const ModelOutline& model,
                                                   const MemoryPlan& plan,
                                                   const MemoryBounds& bounds,
                                                   const platform::MemoryUsage& program);

// If the plan does not fit the bounds, returns an error with the parts and with what would fit.
Status CheckFits(const ModelOutline& model, const MemoryPlan& plan, const MemoryBounds& bounds,
                 const platform::MemoryUsage& program);

}  // namespace cria
