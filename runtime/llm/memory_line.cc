#include "llm/memory_line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace cria {
namespace {

struct PartRow {
  MemoryPart part;
  std::string_view name;
};

constexpr std::array kParts = std::to_array<PartRow>({
    {MemoryPart::kPackedWeights, "packed weights"},
    {MemoryPart::kTokenExperts, "experts of one token"},
    {MemoryPart::kOtherExperts, "other experts"},
    {MemoryPart::kMetadata, "tokenizer and metadata"},
    {MemoryPart::kEmbeddingTable, "embedding table"},
    {MemoryPart::kPerLayerEmbeddings, "per-layer embeddings"},
    {MemoryPart::kKvCache, "KV cache"},
    {MemoryPart::kRecurrentStates, "recurrent states"},
    {MemoryPart::kSequenceTables, "sequence tables"},
    {MemoryPart::kRopeTables, "rope tables"},
    {MemoryPart::kNormWeights, "norm weights"},
    {MemoryPart::kLogits, "logits"},
    {MemoryPart::kActivations, "activations"},
    {MemoryPart::kOperators, "XNNPACK's operators"},
    {MemoryPart::kSession, "session"},
    {MemoryPart::kConstraints, "constraints"},
    {MemoryPart::kReadingConstraints, "a constraint that is read"},
    {MemoryPart::kThreadStacks, "thread stacks"},
    {MemoryPart::kProgram, "program"},
    {MemoryPart::kProgramFiles, "program, from its files"},
    {MemoryPart::kRankExchange, "exchange between ranks"},
    {MemoryPart::kOther, ""},
});
static_assert(kParts.size() == static_cast<size_t>(MemoryPart::kOther) + 1);
static_assert(std::ranges::adjacent_find(kParts, std::ranges::greater_equal{}, &PartRow::part) ==
                  kParts.end(),
              "the rows have the order of the parts");

}  // namespace

std::string_view MemoryPartName(MemoryPart part) { return kParts[static_cast<size_t>(part)].name; }

MemoryLine MemoryLine::Other(std::string name, MemoryKind kind, uint64_t bytes) {
  return {.part = MemoryPart::kOther, .kind = kind, .bytes = bytes, .other_name = std::move(name)};
}

std::string MemoryLine::name() const {
  std::string name = is_of_draft_model ? "draft model: " : "";
  name += MemoryPartName(part);
  return name + other_name;
}

}  // namespace cria
