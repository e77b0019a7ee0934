#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cria/error.h"
#include "grammar/expressions.h"

namespace cria::grammar {

// The states that texts come to, made when they are needed: each is an expression that the rest of
// the text must match. They are in fixed memory: when it is used up, the states that no text is in
// are forgotten.
class Automaton {
 public:
  using State = uint16_t;
  static constexpr State kDead = 0;     // Nothing can end the text.
  static constexpr State kUnknown = 1;  // In a row: not computed so far.
  static constexpr State kFirst = 2;    // At the beginning of the text.
  static constexpr uint16_t kNoMask = 0xFFFF;

  Automaton() = default;
  // The expressions are finished, and outlive it. `memory` must be aligned to 4 bytes.
  Automaton(std::span<std::byte> memory, Expressions* expressions);

  // Makes kFirst. Fails if there is too little memory.
  Status Begin(Node start);

  // The last of `path` becomes the state after `byte` in the one before it; all others of it are in
  // use, and get their new numbers if states are forgotten. kDead if no text goes on like that.
  Status Step(std::span<State> path, uint8_t byte);

  // The last of `path` becomes a state that allows the same tokens as the one before it, and is the
  // same for many such states: see Expressions::WithShortCounts.
  Status StepToSimilar(std::span<State> path);

  // The state after a byte of a class: [states][stride()]. The row of kDead has only kDead, and
  // that of kUnknown only kUnknown. Behind the classes, a row has its own state.
  const State* rows() const { return rows_.data(); }
  size_t stride() const { return stride_; }
  size_t stay() const { return stride_ - 1; }
  const std::array<uint8_t, 256>& classes() const { return expressions_->classes(); }

  bool IsComplete(State state) const { return rests_[state] == 0; }
  // How few bytes can end the text, as Expressions::Rest says: [states].
  const uint32_t* rests() const { return rests_.data(); }

  // A number for each state, kNoMask at first.
  uint16_t mask(State state) const { return masks_[state]; }
  void SetMask(State state, uint16_t mask) { masks_[state] = mask; }

  size_t num_states() const { return num_states_; }
  Node node(State state) const { return nodes_[state]; }
  // How often states were forgotten, so that others got their numbers.
  size_t num_collections() const { return num_collections_; }

 private:
  State* Row(State state) { return rows_.data() + state * stride_; }
  // The last of `path` becomes the state of what `derive` makes of the node before it.
  using Derivation = Node (*)(Expressions& expressions, Node node, uint8_t byte);
  Status Make(std::span<State> path, Derivation derive, uint8_t byte);
  State StateOf(Node node);
  State AddState(Node node, uint32_t rest);
  void Collect(std::span<State> path);

  Expressions* expressions_ = nullptr;
  size_t stride_ = 0;
  size_t num_states_ = 0;
  size_t num_collections_ = 0;
  std::span<Node> nodes_;
  std::span<uint32_t> rests_;
  std::span<uint16_t> masks_;
  std::span<State> rows_;
};

}  // namespace cria::grammar
