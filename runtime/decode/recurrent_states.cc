#include "decode/recurrent_states.h"

#include <algorithm>

#include "core/arena.h"
#include "core/format.h"

namespace cria {

uint64_t RecurrentStates::MemoryBytes(const Shape& shape) {
  return uint64_t{shape.num_places} * sizeof(Place);
}

RecurrentStates::RecurrentStates(const Shape& shape, std::span<std::byte> memory)
    : max_rows_(shape.max_rows), places_(TakeArray<Place>(memory, shape.num_places)) {}

Status RecurrentStates::Extend(SequenceId sequence, size_t tokens) {
  Place& place = places_[sequence];
  has_copy_ = false;
  if (tokens < place.num_tokens) {
    return Fail(ErrorCode::kOutOfRange, Format("a sequence of {} tokens cannot be extended to {}",
                                               place.num_tokens, tokens));
  }
  place.extended_tokens = static_cast<uint32_t>(tokens);
  return {};
}

Status RecurrentStates::Restore(SequenceId sequence, size_t tokens) {
  const auto count = static_cast<uint32_t>(tokens);
  has_copy_ = false;
  places_[sequence] = {.state_tokens = count, .num_tokens = count, .extended_tokens = count};
  return {};
}

size_t RecurrentStates::LongestPrefix(size_t place, size_t tokens) const {
  const Place& kept = places_[place];
  const size_t prefix = std::min<size_t>(tokens, kept.num_tokens);
  return prefix < kept.state_tokens ? 0 : prefix;
}

Status RecurrentStates::Truncate(SequenceId sequence, size_t tokens) {
  CRIA_RETURN_IF_ERROR(CheckPrefix(sequence, tokens));
  has_copy_ = false;
  Place& place = places_[sequence];
  place.num_tokens = place.extended_tokens = static_cast<uint32_t>(tokens);
  if (tokens == 0) place.state_tokens = 0;
  return {};
}

void RecurrentStates::Save(SequenceId sequence, size_t checkpoint) { Copy(sequence, checkpoint); }

void RecurrentStates::Load(size_t checkpoint, SequenceId sequence, size_t tokens) {
  Copy(checkpoint, sequence);
  Place& place = places_[sequence];
  place.num_tokens = place.extended_tokens = static_cast<uint32_t>(tokens);
}

void RecurrentStates::Forget(size_t checkpoint) { places_[checkpoint] = {}; }

Status RecurrentStates::Share(size_t place, SequenceId from, SequenceId to, size_t tokens) {
  static_cast<void>(from);
  CRIA_RETURN_IF_ERROR(CheckPrefix(place, tokens));
  if (tokens == 0) return Truncate(to, 0);
  Load(place, to, tokens);
  return {};
}

bool RecurrentStates::CanDrop(SequenceId sequence, size_t first, size_t count) const {
  const size_t num_tokens = places_[sequence].num_tokens;
  return count == 0 || (first + count == num_tokens && LongestPrefix(sequence, first) == first);
}

Status RecurrentStates::Drop(SequenceId sequence, size_t first, size_t count) {
  if (CanDrop(sequence, first, count)) return count == 0 ? Status() : Truncate(sequence, first);
  return Fail(ErrorCode::kUsage,
              "a recurrent layer cannot forget tokens before others: run the tokens again");
}

StateRun RecurrentStates::Run(SequenceId sequence) const {
  const Place& place = places_[sequence];
  return {.place = sequence,
          .state_tokens = place.state_tokens,
          .num_kept_rows = place.num_tokens - place.state_tokens,
          .num_tokens = place.extended_tokens - place.num_tokens,
          .new_state_tokens = NewStateTokens(place)};
}

void RecurrentStates::Advance(SequenceId sequence) {
  Place& place = places_[sequence];
  place.state_tokens = NewStateTokens(place);
  place.num_tokens = place.extended_tokens;
}

void RecurrentStates::Lose(SequenceId sequence) { places_[sequence] = {}; }

Status RecurrentStates::CheckPrefix(size_t place, size_t tokens) const {
  if (LongestPrefix(place, tokens) == tokens) return {};
  return Fail(
      ErrorCode::kUsage,
      Format("the state after the first {} tokens is not kept: run the tokens again", tokens));
}

uint32_t RecurrentStates::NewStateTokens(const Place& place) const {
  const size_t end = place.extended_tokens;
  const size_t num_rows = std::min<size_t>(end - place.num_tokens, max_rows_);
  return static_cast<uint32_t>(std::max<size_t>(place.state_tokens, end - num_rows));
}

void RecurrentStates::Copy(size_t source, size_t target) {
  places_[target] = places_[source];
  places_[target].extended_tokens = places_[target].num_tokens;
  copy_ = {.source = static_cast<uint32_t>(source), .target = static_cast<uint32_t>(target)};
  has_copy_ = true;
}

}  // namespace cria
