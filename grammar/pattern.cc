#include "grammar/pattern.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "grammar/pattern_builder.h"
#include "grammar/pattern_parser.h"

namespace cria::grammar {
namespace {

// Repetitions of assertions are written out, at most so many parts of a pattern; without any, a
// pattern has at most kMaxPatternBytes parts.
constexpr size_t kMaxPatternSteps = kMaxPatternBytes;
// What an intersection costs more than a part. Those of look-ahead are within each other, so that
// each takes longer than the one before.
constexpr size_t kBoundarySteps = 5;
constexpr size_t kLookAheadSteps = 100;

}  // namespace

PatternBuilder::PatternBuilder(Expressions& expressions, PatternTree& tree,
                               CharacterEncoding encoding)
    : expressions_(expressions),
      tree_(tree),
      encoding_(encoding),
      num_sides_(tree.has_word_boundary ? 3 : 2) {
  classes_[kEdge].Add(0, kMaxCodePoint);
  classes_[kWord] = tree.has_word_boundary ? WordCharacters() : classes_[kEdge];
  if (tree.has_word_boundary) {
    classes_[kWord + 1] = WordCharacters();
    classes_[kWord + 1].Complement();
  }
  for (size_t side = 0; side < num_sides_; ++side) {
    class_nodes_[side] = Characters(expressions, classes_[side].ranges(), encoding);
  }
  any_text_ = expressions.Repeat(class_nodes_[kEdge], 0, kUnbounded);
}

bool PatternBuilder::Charge(size_t steps, uint32_t item) {
  steps_ += steps;
  if (steps_ > kMaxPatternSteps && !error_) {
    error_ = FailPattern(ErrorCode::kUnsupported, tree_.items[item].position,
                         "the pattern has too many assertions, such as ^, \\b and look-ahead, if "
                         "what is repeated is written out")
                 .error();
  }
  return !error_ && expressions_.status().has_value();
}

bool PatternBuilder::IsSame(const Sides& rest) const { return rest == AllSides(rest[kEdge]); }

PatternBuilder::Sides PatternBuilder::AllSides(Node node) const {
  Sides sides = {};
  std::fill_n(sides.begin(), num_sides_, node);
  return sides;
}

Node PatternBuilder::BeginningWith(size_t side, Node texts) {
  const Node begins = expressions_.Sequence(class_nodes_[side], any_text_);
  return texts == any_text_ ? begins : expressions_.Both(texts, begins);
}

Node PatternBuilder::CharactersOfClass(const PatternItem& item, size_t side) {
  const auto all = std::span<const CodePointRange>(tree_.ranges).subspan(item.child, item.min);
  if (side == kEdge || num_sides_ == 2) return Characters(expressions_, all, encoding_);
  return Characters(expressions_, CharacterSet(all).Intersection(classes_[side]).ranges(),
                    encoding_);
}

Node PatternBuilder::Plain(uint32_t index) {
  const PatternItem item = tree_.items[index];
  if (item.node != UINT32_MAX) return item.node;
  // What has no node yet is visited for the first time, which the pattern's length bounds.
  Node node = Expressions::kEmpty;
  if (item.kind == PatternKind::kCharacters) {
    node = CharactersOfClass(item, kEdge);
  } else if (item.kind == PatternKind::kSequence) {
    for (uint32_t part = item.child; part != 0; part = tree_.items[part].previous) {
      node = expressions_.Sequence(Plain(part), node);
    }
  } else if (item.kind == PatternKind::kChoice) {
    std::vector<Node> options;
    for (uint32_t part = item.child; part != 0; part = tree_.items[part].previous) {
      options.push_back(Plain(part));
    }
    node = expressions_.Choice(options);
  } else if (item.kind == PatternKind::kRepeat) {
    node = expressions_.Repeat(Plain(item.child), item.min, item.max);
  }
  tree_.items[index].node = node;
  return node;
}

PatternBuilder::Sides PatternBuilder::BuildItem(uint32_t index, const Sides& rest) {
  if (!Charge(1, index)) return {};
  const PatternItem item = tree_.items[index];
  if (item.is_plain && IsSame(rest)) {
    return AllSides(expressions_.Sequence(Plain(index), rest[kEdge]));
  }
  switch (item.kind) {
    case PatternKind::kEmpty:
      return rest;
    case PatternKind::kCharacters: {
      Node node = Expressions::kNothing;
      for (size_t side = kWord; side < num_sides_; ++side) {
        node = expressions_.Choice(
            node, expressions_.Sequence(CharactersOfClass(item, side), rest[side]));
      }
      return AllSides(node);
    }
    case PatternKind::kSequence:
      return BuildSequence(item, rest);
    case PatternKind::kChoice:
      return BuildChoice(item, rest);
    case PatternKind::kRepeat:
      return item.is_plain ? BuildPlainRepeat(index, rest) : BuildRepeat(index, rest);
    default:
      return BuildAssertion(index, rest);
  }
}

PatternBuilder::Sides PatternBuilder::BuildSequence(const PatternItem& sequence, Sides rest) {
  for (uint32_t part = sequence.child; part != 0; part = tree_.items[part].previous) {
    rest = BuildItem(part, rest);
  }
  return rest;
}

PatternBuilder::Sides PatternBuilder::BuildChoice(const PatternItem& choice, const Sides& rest) {
  std::array<std::vector<Node>, kMaxSides> options;
  for (uint32_t part = choice.child; part != 0; part = tree_.items[part].previous) {
    const Sides built = BuildItem(part, rest);
    for (size_t side = 0; side < num_sides_; ++side) options[side].push_back(built[side]);
  }
  Sides all = {};
  for (size_t side = 0; side < num_sides_; ++side) all[side] = expressions_.Choice(options[side]);
  return all;
}

// The last character of the repeated texts decides which rest follows.
PatternBuilder::Sides PatternBuilder::BuildPlainRepeat(uint32_t index, const Sides& rest) {
  const PatternItem item = tree_.items[index];
  const Node all = Plain(index);
  Node some = Expressions::kNothing;
  if (tree_.items[item.child].kind == PatternKind::kCharacters && item.max > 0) {
    // One repetition less, and the last one.
    const uint32_t max = item.max == kUnbounded ? kUnbounded : item.max - 1;
    some = expressions_.Sequence(
        expressions_.Repeat(Plain(item.child), std::max(item.min, 1u) - 1, max),
        BuildItem(item.child, rest)[kEdge]);
  } else {
    for (size_t side = kWord; side < num_sides_; ++side) {
      const Node ends = expressions_.Sequence(any_text_, class_nodes_[side]);
      some = expressions_.Choice(some,
                                 expressions_.Sequence(expressions_.Both(all, ends), rest[side]));
    }
  }
  Sides built = AllSides(some);
  if (!expressions_.MatchesEmpty(all)) return built;
  for (size_t side = 0; side < num_sides_; ++side) {
    built[side] = expressions_.Choice(some, rest[side]);
  }
  return built;
}

PatternBuilder::Sides PatternBuilder::BuildRepeat(uint32_t index, const Sides& rest) {
  const PatternItem item = tree_.items[index];
  Sides built = rest;
  if (item.max == kUnbounded) {
    if (BuildTemperedLoop(index, rest, &built)) return built;
    built = BuildLoop(item.child, rest);
  } else {
    for (uint32_t i = item.min; i < item.max; ++i) {
      Sides more = BuildItem(item.child, built);
      for (size_t side = 0; side < num_sides_; ++side) {
        more[side] = expressions_.Choice(more[side], rest[side]);
      }
      // Then further repetitions change nothing, either.
      if (more == built || error_) break;
      built = more;
    }
  }
  for (uint32_t i = 0; i < item.min; ++i) {
    const Sides more = BuildItem(item.child, built);
    if (more == built || error_) break;
    built = more;
  }
  return built;
}

PatternBuilder::Sides PatternBuilder::BuildAssertion(uint32_t index, const Sides& rest) {
  const PatternItem item = tree_.items[index];
  Sides built = {};
  if (!Charge(item.has_look_ahead ? kLookAheadSteps : kBoundarySteps, index)) return {};
  if (item.has_look_ahead) {
    const Sides ahead = BuildItem(item.child, AllSides(any_text_));
    for (size_t side = 0; side < num_sides_; ++side) {
      const bool is_unwanted = item.kind == PatternKind::kNotLookAhead;
      if (ahead[side] == any_text_) {
        built[side] = is_unwanted ? Expressions::kNothing : rest[side];
      } else if (is_unwanted) {
        built[side] = expressions_.Both(rest[side], expressions_.Not(ahead[side]));
      } else {
        built[side] =
            rest[side] == any_text_ ? ahead[side] : expressions_.Both(rest[side], ahead[side]);
      }
    }
    return built;
  }
  for (size_t before = 0; before < num_sides_; ++before) {
    // Where the assertion holds whatever follows, as ^ does, nothing needs to be told apart.
    size_t num_held = 0;
    std::array<Node, kMaxSides> options = {};
    for (size_t after = 0; after < num_sides_; ++after) {
      if (!HoldsAt(item.kind, before * num_sides_ + after)) continue;
      ++num_held;
      if (after != kEdge) {
        options[after] = BeginningWith(after, rest[before]);
      } else if (expressions_.MatchesEmpty(rest[before])) {
        options[after] = Expressions::kEmpty;
      }
    }
    built[before] = num_held == num_sides_ ? rest[before] : expressions_.Choice(options);
  }
  return built;
}

Result<Node> PatternBuilder::Build(bool anchored) {
  const Sides end = AllSides(anchored ? Expressions::kEmpty : any_text_);
  const Sides built = BuildItem(tree_.root, end);
  if (error_) return std::unexpected(*std::move(error_));
  CRIA_RETURN_IF_ERROR(expressions_.status());
  if (anchored) return built[kEdge];
  if (IsSame(built)) return expressions_.Sequence(any_text_, built[kEdge]);
  std::array<Node, kMaxSides> options = {built[kEdge]};
  for (size_t side = kWord; side < num_sides_; ++side) {
    const Node ends = expressions_.Sequence(any_text_, class_nodes_[side]);
    options[side] = expressions_.Sequence(ends, built[side]);
  }
  const Node found = expressions_.Choice(options);
  CRIA_RETURN_IF_ERROR(expressions_.status());
  return found;
}

Result<Node> ReadPattern(Expressions& expressions, std::string_view pattern,
                         CharacterEncoding encoding, bool anchored) {
  CRIA_ASSIGN_OR_RETURN(PatternTree tree, ParsePattern(pattern));
  return PatternBuilder(expressions, tree, encoding).Build(anchored);
}

}  // namespace cria::grammar
