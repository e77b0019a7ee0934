#include "llm/sequence_slot.h"

#include <algorithm>

#include "llm/common_beginning.h"

namespace cria {

Status SequenceSlots::Slot::Truncate(size_t count, TokenModel& model) {
  Sequences& sequences = model.sequences();
  tokens.resize(sequences.LongestPrefix(*sequence, std::min(count, tokens.size())));
  num_exact = std::min(num_exact, tokens.size());
  num_shared = std::min(num_shared, tokens.size());
  CRIA_RETURN_IF_ERROR(sequences.Truncate(*sequence, tokens.size()));
  return model.CarryOutMoves();
}

Status SequenceSlots::Slot::AddCheckpoint(TokenModel& model) {
  Sequences& sequences = model.sequences();
  // The sequence may be longer by drafts that were not accepted.
  if (sequences.num_tokens(*sequence) != tokens.size()) return {};
  sequences.AddCheckpoint(*sequence);
  return model.CarryOutMoves();
}

size_t SequenceSlots::Slot::OwnTokens(std::span<const Slot> slots) const {
  size_t shared = 0;
  for (const Slot& other : slots) {
    if (&other == this) continue;
    shared =
        std::max(shared, CommonBeginning(tokens, std::span(other.tokens).first(other.num_exact)));
  }
  return tokens.size() - shared;
}

}  // namespace cria
