// Unlimited repetitions of assertions.
//
// Without look-ahead, whether an assertion holds depends on the characters before and after it
// alone. So a part of a pattern is a matrix: the texts with which it leads from one place to
// another, where a place is the sides before and after it. Sequences multiply matrices,
// alternatives add them, and the closure of a matrix is the loop (Kleene 1956).

#include <algorithm>
#include <array>

#include "grammar/pattern_builder.h"

namespace cria::grammar {
namespace {

// The work of a product of two matrices, in visits of parts of a pattern.
constexpr size_t kProductSteps = 100;

}  // namespace

bool PatternBuilder::HoldsAt(PatternKind assertion, size_t place) const {
  const size_t before = BeforePlace(place);
  const size_t after = AfterPlace(place);
  switch (assertion) {
    case PatternKind::kBegin:
      return before == kEdge;
    case PatternKind::kEnd:
      return after == kEdge;
    case PatternKind::kWordBoundary:
      return (before == kWord) != (after == kWord);
    default:
      return (before == kWord) == (after == kWord);
  }
}

// (?:(?!…)x)*, where x is one character and nothing may follow: the texts of such characters in
// which what must not come is found nowhere.
bool PatternBuilder::BuildTemperedLoop(uint32_t index, const Sides& rest, Sides* built) {
  const PatternItem& loop = tree_.items[index];
  const PatternItem& body = tree_.items[loop.child];
  if (!body.has_look_ahead || body.kind != PatternKind::kSequence) return false;
  const PatternItem& character = tree_.items[body.child];
  const PatternItem& ahead = tree_.items[character.previous];
  if (character.kind != PatternKind::kCharacters || ahead.kind != PatternKind::kNotLookAhead ||
      ahead.previous != 0 || !tree_.items[ahead.child].is_plain ||
      rest != AllSides(Expressions::kEmpty)) {
    return false;
  }
  // It may be empty, but is not looked for at the end, where there is no further repetition.
  const Node found = BeginningWith(kEdge, any_text_);
  const Node unwanted =
      expressions_.Both(found, expressions_.Sequence(Plain(ahead.child), any_text_));
  const Node all = expressions_.Repeat(Plain(body.child), loop.min, loop.max);
  *built = AllSides(
      expressions_.Both(all, expressions_.Not(expressions_.Sequence(any_text_, unwanted))));
  return true;
}

PatternBuilder::Moves PatternBuilder::StayMoves() const {
  Moves moves = {};
  for (size_t place = 0; place < num_places(); ++place) moves[place][place] = Expressions::kEmpty;
  return moves;
}

// Adds texts that begin and end with characters of these classes: whatever is before and after.
void PatternBuilder::AddMove(Node texts, size_t first_side, size_t last_side, Moves* moves) {
  for (size_t before = 0; before < num_sides_; ++before) {
    for (size_t after = 0; after < num_sides_; ++after) {
      Node& move = (*moves)[before * num_sides_ + first_side][last_side * num_sides_ + after];
      move = expressions_.Choice(move, texts);
    }
  }
}

PatternBuilder::Moves PatternBuilder::Product(const Moves& first, const Moves& second,
                                              uint32_t index) {
  Moves product = {};
  if (!Charge(kProductSteps, index)) return product;
  for (size_t from = 0; from < num_places(); ++from) {
    for (size_t to = 0; to < num_places(); ++to) {
      std::array<Node, kMaxPlaces> options = {};
      for (size_t over = 0; over < num_places(); ++over) {
        options[over] = expressions_.Sequence(first[from][over], second[over][to]);
      }
      product[from][to] = expressions_.Choice(options);
    }
  }
  return product;
}

void PatternBuilder::Add(const Moves& other, Moves* moves) {
  for (size_t from = 0; from < num_places(); ++from) {
    for (size_t to = 0; to < num_places(); ++to) {
      (*moves)[from][to] = expressions_.Choice((*moves)[from][to], other[from][to]);
    }
  }
}

// Any number of moves, one after the other: after each round, those that pass through one place
// more.
PatternBuilder::Moves PatternBuilder::Closure(Moves moves, uint32_t index) {
  if (!Charge(kProductSteps, index)) return moves;
  for (size_t over = 0; over < num_places(); ++over) {
    const Moves before = moves;
    const Node loop = expressions_.Repeat(before[over][over], 0, kUnbounded);
    for (size_t from = 0; from < num_places(); ++from) {
      const Node leads = expressions_.Sequence(before[from][over], loop);
      for (size_t to = 0; to < num_places(); ++to) {
        const Node through = expressions_.Sequence(leads, before[over][to]);
        moves[from][to] = expressions_.Choice(before[from][to], through);
      }
    }
  }
  Add(StayMoves(), &moves);
  return moves;
}

PatternBuilder::Moves PatternBuilder::MovesOfRepeat(uint32_t index) {
  const PatternItem item = tree_.items[index];
  if (item.is_plain) {
    const Node all = Plain(index);
    Moves moves = expressions_.MatchesEmpty(all) ? StayMoves() : Moves{};
    for (size_t first = kWord; first < num_sides_; ++first) {
      for (size_t last = kWord; last < num_sides_; ++last) {
        const Node ends = expressions_.Sequence(any_text_, class_nodes_[last]);
        AddMove(expressions_.Both(BeginningWith(first, all), ends), first, last, &moves);
      }
    }
    return moves;
  }
  const Moves once = MovesOf(item.child);
  Moves moves = StayMoves();
  if (item.max == kUnbounded) {
    moves = Closure(once, index);
  } else {
    for (uint32_t i = item.min; i < item.max && !error_; ++i) {
      Moves more = Product(once, moves, index);
      Add(StayMoves(), &more);
      if (more == moves) break;
      moves = more;
    }
  }
  for (uint32_t i = 0; i < item.min && !error_; ++i) {
    const Moves more = Product(once, moves, index);
    if (more == moves) break;
    moves = more;
  }
  return moves;
}

PatternBuilder::Moves PatternBuilder::MovesOf(uint32_t index) {
  const PatternItem item = tree_.items[index];
  if (!Charge(kProductSteps / 10, index)) return {};
  Moves moves = {};
  switch (item.kind) {
    case PatternKind::kEmpty:
      return StayMoves();
    case PatternKind::kCharacters:
      for (size_t side = kWord; side < num_sides_; ++side) {
        AddMove(CharactersOfClass(item, side), side, side, &moves);
      }
      return moves;
    case PatternKind::kSequence:
      moves = StayMoves();
      for (uint32_t part = item.child; part != 0; part = tree_.items[part].previous) {
        moves = Product(MovesOf(part), moves, index);
      }
      return moves;
    case PatternKind::kChoice:
      for (uint32_t part = item.child; part != 0; part = tree_.items[part].previous) {
        Add(MovesOf(part), &moves);
      }
      return moves;
    case PatternKind::kRepeat:
      return MovesOfRepeat(index);
    default:
      break;
  }
  for (size_t place = 0; place < num_places(); ++place) {
    if (HoldsAt(item.kind, place)) moves[place][place] = Expressions::kEmpty;
  }
  return moves;
}

// Any number of repetitions of the item, and then `rest`.
PatternBuilder::Sides PatternBuilder::BuildLoop(uint32_t index, const Sides& rest) {
  // No repetition at all allows every rest already.
  if (rest == AllSides(any_text_)) return rest;
  if (tree_.items[index].has_look_ahead) {
    if (!error_) {
      error_ = FailPattern(ErrorCode::kUnsupported, tree_.items[index].position,
                           "look-ahead in an unlimited repetition is not supported, but for "
                           "(?:(?!…).)* before the end of the text")
                   .error();
    }
    return {};
  }
  const Moves moves = Closure(MovesOf(index), index);
  Sides built = {};
  for (size_t to = 0; to < num_places(); ++to) {
    const Node texts = rest[BeforePlace(to)];
    Node end = Expressions::kNothing;
    if (AfterPlace(to) != kEdge) {
      end = BeginningWith(AfterPlace(to), texts);
    } else if (expressions_.MatchesEmpty(texts)) {
      end = Expressions::kEmpty;
    }
    for (size_t from = 0; from < num_places(); ++from) {
      Node& all = built[BeforePlace(from)];
      all = expressions_.Choice(all, expressions_.Sequence(moves[from][to], end));
    }
  }
  return built;
}

}  // namespace cria::grammar
