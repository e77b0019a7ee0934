#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cria/error.h"
#include "grammar/character_classes.h"
#include "grammar/characters.h"
#include "grammar/expressions.h"
#include "grammar/pattern_parser.h"

namespace cria::grammar {

// Turns a pattern into an expression, from its end to its beginning.
//
// What may follow a place of the pattern is an expression for the whole rest of the text, because
// then assertions about what comes next are intersections with it. Assertions about what came
// before need to know the last character, as far as they tell characters apart; so there is one
// expression for each side that it may be of.
class PatternBuilder {
 public:
  // What is on one side of a place in the text: its edge, or a character of a class. The classes
  // are all characters, or, if the pattern has \b or \B, those of \w and the others.
  static constexpr size_t kEdge = 0;
  static constexpr size_t kWord = 1;
  static constexpr size_t kMaxSides = 3;
  using Sides = std::array<Node, kMaxSides>;

  PatternBuilder(Expressions& expressions, PatternTree& tree, CharacterEncoding encoding);

  Result<Node> Build(bool anchored);

 private:
  // A place between two characters: `before * num_sides_ + after`.
  static constexpr size_t kMaxPlaces = kMaxSides * kMaxSides;
  // From each place to each: the texts between them.
  using Moves = std::array<std::array<Node, kMaxPlaces>, kMaxPlaces>;

  // Counts the work; false if it is too much, or after an error.
  bool Charge(size_t steps, uint32_t item);

  bool IsSame(const Sides& rest) const;
  Sides AllSides(Node node) const;
  // The texts of `texts` that begin with a character of the class.
  Node BeginningWith(size_t side, Node texts);
  // The expression of an item that has no assertions.
  Node Plain(uint32_t item);
  // The characters of an item that are of the class.
  Node CharactersOfClass(const PatternItem& item, size_t side);

  // The texts from the beginning of the item to the end of the text, if `rest` is what follows it.
  // The sides of `rest` are before its texts, and those of the result before its own.
  Sides BuildItem(uint32_t item, const Sides& rest);
  Sides BuildSequence(const PatternItem& sequence, Sides rest);
  Sides BuildChoice(const PatternItem& choice, const Sides& rest);
  Sides BuildPlainRepeat(uint32_t item, const Sides& rest);
  Sides BuildRepeat(uint32_t item, const Sides& rest);
  Sides BuildAssertion(uint32_t item, const Sides& rest);

  // pattern_loops.cc: repetitions of assertions.
  bool BuildTemperedLoop(uint32_t item, const Sides& rest, Sides* built);
  Sides BuildLoop(uint32_t item, const Sides& rest);
  size_t num_places() const { return num_sides_ * num_sides_; }
  size_t BeforePlace(size_t place) const { return place / num_sides_; }
  size_t AfterPlace(size_t place) const { return place % num_sides_; }
  bool HoldsAt(PatternKind assertion, size_t place) const;
  // Nowhere from one place to another, and with the empty text to the same place.
  Moves StayMoves() const;
  void AddMove(Node texts, size_t first_side, size_t last_side, Moves* moves);
  Moves MovesOf(uint32_t item);
  Moves MovesOfRepeat(uint32_t item);
  Moves Product(const Moves& first, const Moves& second, uint32_t item);
  void Add(const Moves& other, Moves* moves);
  Moves Closure(Moves moves, uint32_t item);

  Expressions& expressions_;
  PatternTree& tree_;
  CharacterEncoding encoding_;
  size_t num_sides_;
  std::array<CharacterSet, kMaxSides> classes_;
  Sides class_nodes_ = {};  // One character of each class; of kEdge, any character.
  Node any_text_;
  size_t steps_ = 0;
  std::optional<Error> error_;
};

}  // namespace cria::grammar
