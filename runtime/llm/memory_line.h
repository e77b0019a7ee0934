#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cria {

// Whether the kernel can take a page back.
enum class MemoryKind : uint8_t {
  kPrivate,  // Only by swapping.
  kMapped,   // The kernel may drop the page and read it from its file again.
  // Mapped experts that one token does not choose. They need no memory, but those that are not in
  // memory are read from the disk when they are chosen.
  kOnDemand,
  // Neither mapped nor in memory: rows are read from the file, as tokens need them.
  kInFile,
};

// What a line of a plan is about. Code asks for a line by its part; only people read its name.
enum class MemoryPart : uint8_t {
  kPackedWeights,
  kTokenExperts,
  kOtherExperts,
  kMetadata,
  kEmbeddingTable,
  kPerLayerEmbeddings,
  kKvCache,
  kRecurrentStates,
  kSequenceTables,
  kRopeTables,
  kNormWeights,
  kLogits,
  kActivations,
  kOperators,
  kSession,
  kConstraints,
  kReadingConstraints,
  kThreadStacks,
  kProgram,
  kProgramFiles,
  kRankExchange,
  kOther,  // What a program takes besides: it names the line.
};

// "KV cache"; empty for kOther.
std::string_view MemoryPartName(MemoryPart part);

struct MemoryLine {
  MemoryPart part = MemoryPart::kOther;
  MemoryKind kind = MemoryKind::kPrivate;
  uint64_t bytes = 0;
  bool is_of_draft_model = false;
  std::string other_name = {};  // The name of a line of kOther.

  // Makes a line of kOther.
  static MemoryLine Other(std::string name, MemoryKind kind, uint64_t bytes);

  // What people read: "KV cache", "draft model: KV cache", or the name of another part.
  std::string name() const;
};

}  // namespace cria
