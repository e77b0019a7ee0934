#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "grammar/automaton.h"
#include "grammar/token_table.h"

namespace cria::grammar {

// The states after 1, 2, … characters where all characters lead to the same state, as in most
// strings, with or without a minimum or maximum of characters. It does not know tokens.
class CharacterSteps {
 public:
  using State = Automaton::State;

  static constexpr size_t kMaxCharacters = TokenTable::kMaxCharacters;
  // How many states it needs behind the path.
  static constexpr size_t kRoom = kMaxCharacters + 5;

  // Begins at the last state of `path`, all of which is in use; behind it, there is room for kRoom
  // states.
  CharacterSteps(Automaton& automaton, std::span<State> path);

  // Whether all plain bytes (TokenTable::IsPlain) lead to the same state, which may be dead, after
  // each of kMaxCharacters.
  Result<bool> FollowPlain();
  // Whether all characters beyond ASCII lead to the same states as plain bytes. FollowPlain must
  // have returned true.
  Result<bool> WideDoTheSame();

  // The state after so many characters, if FollowPlain has returned true.
  State After(size_t num_characters) const { return states_[num_characters]; }

 private:
  struct ByteRange {
    uint8_t first;
    uint8_t last;
  };

  // Sets states_[to] to the state after `byte` in states_[to - 1]. False if states were forgotten,
  // so that others may have got their numbers.
  Result<bool> Step(size_t to, uint8_t byte);
  // Whether all bytes of the ranges, one after the other, lead from states_[from] to `target`.
  Result<bool> AllLeadTo(State target, size_t from, std::span<const ByteRange> ranges);

  Automaton& automaton_;
  const std::span<State> path_;
  State* const states_;
  const size_t num_collections_;
  // For each byte, the first one behind it that is of another class.
  std::array<uint16_t, 256> next_class_;
};

}  // namespace cria::grammar
