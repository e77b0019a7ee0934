#include "decode/sequences.h"

#include <algorithm>

namespace cria {
namespace {

// None if all sequences can become shorter without them.
size_t NumCheckpoints(const Sequences::Shape& shape) {
  const bool has_windows = KvPages::Groups(shape.pages).back().window_tokens != 0;
  return has_windows || shape.max_state_rows != 0 ? shape.pages.num_checkpoints : 0;
}

RecurrentStates::Shape ShapeOfStates(const Sequences::Shape& shape) {
  return {.num_places = shape.pages.num_sequences + shape.pages.num_checkpoints,
          .max_rows = shape.max_state_rows};
}

}  // namespace

Sequences::Shape Sequences::ShapeOf(const ModelConfig& config, const DecoderOptions& options) {
  Shape shape = {.pages = ShapeOfKvPages(config, options)};
  if (config.has_recurrent_layers()) shape.max_state_rows = options.revocable_tokens;
  return shape;
}

uint64_t Sequences::MemoryBytes(const Shape& shape) {
  return KvPages::MemoryBytes(shape.pages) + NumCheckpoints(shape) * sizeof(Checkpoint) +
         (shape.max_state_rows == 0 ? 0 : RecurrentStates::MemoryBytes(ShapeOfStates(shape)));
}

Sequences::Sequences(const Shape& shape, std::span<std::byte> memory)
    : num_sequences_(shape.pages.num_sequences), pages_(shape.pages, memory), stores_{&pages_} {
  memory = memory.subspan(static_cast<size_t>(KvPages::MemoryBytes(shape.pages)));
  checkpoints_ = TakeArray<Checkpoint>(memory, NumCheckpoints(shape));
  if (shape.max_state_rows == 0) return;
  stores_.push_back(&states_.emplace(ShapeOfStates(shape), memory));
}

void Sequences::Close(SequenceId sequence) {
  ForgetCheckpointsAfter(sequence, 0);
  // An empty sequence is always possible.
  if (states_) static_cast<void>(states_->Truncate(sequence, 0));
  pages_.Close(sequence);
}

Status Sequences::Extend(SequenceId sequence, size_t tokens) {
  // Only the pages can run out, so they are the first.
  for (SequenceStore* const store : stores_) {
    CRIA_RETURN_IF_ERROR(store->Extend(sequence, tokens));
  }
  return {};
}

Status Sequences::Restore(SequenceId sequence, size_t tokens) {
  for (SequenceStore* const store : stores_) {
    CRIA_RETURN_IF_ERROR(store->Restore(sequence, tokens));
  }
  return {};
}

size_t Sequences::LongestPrefix(SequenceId sequence, size_t tokens) const {
  return FindPrefix(sequence, tokens).num_tokens;
}

Status Sequences::Truncate(SequenceId sequence, size_t tokens) {
  const Found found = FindPrefix(sequence, tokens);
  if (found.num_tokens != tokens) return Refusing(found.place, tokens).Truncate(sequence, tokens);
  for (SequenceStore* const store : stores_) {
    if (found.place == sequence) {
      CRIA_RETURN_IF_ERROR(store->Truncate(sequence, tokens));
    } else {
      store->Load(found.place, sequence, tokens);
    }
  }
  Use(found.place);
  ForgetCheckpointsAfter(sequence, tokens);
  return {};
}

void Sequences::AddCheckpoint(SequenceId sequence) {
  const size_t tokens = num_tokens(sequence);
  if (checkpoints_.empty() || tokens == 0) return;
  const auto is_there = [&](const Checkpoint& checkpoint) {
    return checkpoint.is_used != 0 && checkpoint.sequence == sequence &&
           PrefixOf(PlaceOf(checkpoint), std::min<size_t>(tokens, checkpoint.num_tokens)) == tokens;
  };
  const auto same = std::ranges::find_if(checkpoints_, is_there);
  if (same != checkpoints_.end()) return Use(PlaceOf(*same));
  // The new one has what this one is for.
  const auto is_replaced = [&](const Checkpoint& checkpoint) {
    return checkpoint.is_used != 0 && checkpoint.sequence == sequence &&
           checkpoint.num_tokens + kCheckpointRange >= tokens &&
           PrefixOf(sequence, checkpoint.num_tokens) == checkpoint.num_tokens;
  };
  const auto replaced = std::ranges::find_if(checkpoints_, is_replaced);
  Checkpoint& chosen = replaced != checkpoints_.end() ? *replaced : Choose();
  Forget(chosen);
  chosen = {.is_used = 1, .sequence = sequence, .num_tokens = static_cast<uint32_t>(tokens)};
  for (SequenceStore* const store : stores_) store->Save(sequence, PlaceOf(chosen));
  Use(PlaceOf(chosen));
}

Sequences::Checkpoint& Sequences::Choose() {
  constexpr size_t kNumKept = 2;
  Checkpoint* chosen = nullptr;
  size_t fewest = SIZE_MAX;
  for (Checkpoint& checkpoint : checkpoints_) {
    if (checkpoint.is_used == 0) return checkpoint;
    const auto num_later = std::ranges::count_if(checkpoints_, [&](const Checkpoint& other) {
      return other.last_use > checkpoint.last_use;
    });
    const size_t spared = SparedTokens(checkpoint);
    if (num_later < static_cast<ptrdiff_t>(std::min(kNumKept, checkpoints_.size() - 1)) ||
        spared >= fewest) {
      continue;
    }
    chosen = &checkpoint;
    fewest = spared;
  }
  return *chosen;
}

size_t Sequences::SparedTokens(const Checkpoint& checkpoint) const {
  size_t before = 0;
  for (const Checkpoint& other : checkpoints_) {
    const bool is_before = other.is_used != 0 && other.sequence == checkpoint.sequence &&
                           other.num_tokens < checkpoint.num_tokens;
    if (is_before) before = std::max<size_t>(before, other.num_tokens);
  }
  return checkpoint.num_tokens - before;
}

Status Sequences::Share(SequenceId from, SequenceId to, size_t tokens) {
  const Found found = FindPrefix(from, tokens);
  if (found.num_tokens != tokens) {
    return Refusing(found.place, tokens).Share(found.place, from, to, tokens);
  }
  for (SequenceStore* const store : stores_) {
    CRIA_RETURN_IF_ERROR(store->Share(found.place, from, to, tokens));
  }
  Use(found.place);
  return {};
}

bool Sequences::CanDrop(SequenceId sequence, size_t first, size_t count) const {
  return std::ranges::all_of(
      stores_, [&](const SequenceStore* store) { return store->CanDrop(sequence, first, count); });
}

Status Sequences::Drop(SequenceId sequence, size_t first, size_t count) {
  const auto refusing = std::ranges::find_if(
      stores_, [&](const SequenceStore* store) { return !store->CanDrop(sequence, first, count); });
  if (refusing != stores_.end()) return (*refusing)->Drop(sequence, first, count);
  for (SequenceStore* const store : stores_) {
    CRIA_RETURN_IF_ERROR(store->Drop(sequence, first, count));
  }
  if (count != 0) ForgetCheckpointsAfter(sequence, first);
  return {};
}

size_t Sequences::PlaceOf(const Checkpoint& checkpoint) const {
  return num_sequences_ + static_cast<size_t>(&checkpoint - checkpoints_.data());
}

size_t Sequences::PrefixOf(size_t place, size_t tokens) const {
  // What one store has less may be too little for another one.
  for (size_t prefix = tokens;; tokens = prefix) {
    for (const SequenceStore* const store : stores_) {
      prefix = store->LongestPrefix(place, prefix);
    }
    if (prefix == tokens) return prefix;
  }
}

Sequences::Found Sequences::FindPrefix(SequenceId sequence, size_t tokens) const {
  Found found = {.place = sequence, .num_tokens = PrefixOf(sequence, tokens)};
  for (const Checkpoint& checkpoint : checkpoints_) {
    if (checkpoint.is_used == 0 || checkpoint.sequence != sequence) continue;
    const size_t place = PlaceOf(checkpoint);
    const size_t prefix = PrefixOf(place, std::min<size_t>(tokens, checkpoint.num_tokens));
    if (prefix > found.num_tokens) found = {.place = place, .num_tokens = prefix};
  }
  return found;
}

SequenceStore& Sequences::Refusing(size_t place, size_t tokens) const {
  return **std::ranges::find_if(stores_, [&](const SequenceStore* store) {
    return store->LongestPrefix(place, tokens) != tokens;
  });
}

void Sequences::Forget(Checkpoint& checkpoint) {
  if (checkpoint.is_used == 0) return;
  for (SequenceStore* const store : stores_) store->Forget(PlaceOf(checkpoint));
  checkpoint = {};
}

void Sequences::ForgetCheckpointsAfter(SequenceId sequence, size_t tokens) {
  for (Checkpoint& checkpoint : checkpoints_) {
    if (checkpoint.is_used == 0 || checkpoint.sequence != sequence) continue;
    if (checkpoint.num_tokens <= tokens) continue;
    // It may have a little less than it was made for, too.
    if (tokens != 0 && PrefixOf(PlaceOf(checkpoint), tokens) == tokens) {
      checkpoint.num_tokens = static_cast<uint32_t>(tokens);
    } else {
      Forget(checkpoint);
    }
  }
}

void Sequences::Use(size_t place) {
  if (place < num_sequences_) return;
  checkpoints_[place - num_sequences_].last_use = ++num_uses_;
}

}  // namespace cria
