#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "grammar/automaton.h"
#include "grammar/token_table.h"

namespace cria::grammar {

// Which tokens may come next in a state. Masks are kept, in fixed memory, until others need their
// place.
class TokenMasks {
 public:
  using State = Automaton::State;

  struct Mask {
    std::span<uint64_t> words;  // [vocab / 64, rounded up]: bit id % 64 of word id / 64.
    uint32_t count = 0;         // How many tokens it allows.
    int32_t last = -1;          // One of the tokens.
    uint32_t max_rest = 0;      // After the tokens, the text can be ended with so few bytes.
    uint32_t min_rest = 0;      // The smallest one, of all that can go on.
    State owner = Automaton::kDead;
    uint32_t last_use = 0;
  };

  // A similar state, and the states within a token.
  static constexpr size_t kRoom = 1 + TokenTable::kMaxPieceBytes + TokenTable::kInlineBytes;

  static size_t MaskBytes(size_t vocab_size);
  // As many masks as `memory`, which is aligned to 8 bytes, has room for. It needs 2.
  TokenMasks(std::span<std::byte> memory, const TokenTable& tokens);

  bool HasMemory() const { return num_masks_ >= 2; }
  // For another automaton.
  void Clear();

  // The mask of the last state of `path`. All of `path` is in use; behind it, there is room for
  // kRoom states.
  Result<const Mask*> Find(Automaton& automaton, std::span<State> path);
  // Only tokens after which `max_rest` bytes can end the text. Valid until the next call; asked
  // again for the same, it costs nothing.
  Result<const Mask*> FindWithin(Automaton& automaton, std::span<State> path, uint32_t max_rest);

 private:
  static constexpr size_t kMaxMasks = 128;

  Status Compute(Automaton& automaton, std::span<State> path, uint32_t max_rest, Mask& mask);
  void FollowCollections(const Automaton& automaton);

  const TokenTable& tokens_;
  std::array<Mask, kMaxMasks> masks_;  // The first one is the last of FindWithin.
  uint32_t limit_ = 0;                 // What FindWithin had as `max_rest`.
  size_t num_masks_ = 0;
  uint32_t num_uses_ = 0;
  size_t num_collections_ = 0;
};

}  // namespace cria::grammar
