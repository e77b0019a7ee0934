// What must be known of rules before derivatives can go through them.
#include <algorithm>

#include "core/format.h"
#include "grammar/expressions.h"

namespace cria::grammar {
namespace {

// How often all expressions are gone through until nothing changes: as often as rules refer to
// each other in a row, for most.
constexpr uint64_t kMaxSettlingSteps = 20'000'000;
// Rules in rules (and options in options) without a byte between them.
constexpr size_t kMaxLeftDepth = 300;

}  // namespace

// Everything that texts of `start` are made of gets kUsed.
void Expressions::MarkUsed(Node start) {
  const size_t base = store_.stack_size();
  const auto visit = [this](Node node) {
    if (store_.Has(node, kUsed) || !Push(node)) return;
    store_.Set(node, kUsed, true);
  };
  visit(start);
  while (store_.stack_size() > base && status_) {
    const Node node = store_.Pop();
    switch (store_.kind(node)) {
      case NodeKind::kSequence:
      case NodeKind::kChoice:
        visit(store_.a(node));
        [[fallthrough]];
      case NodeKind::kRule:
        visit(store_.b(node));
        break;
      case NodeKind::kRepeat:
        visit(store_.a(node));
        break;
      default:
        break;
    }
  }
  store_.ShrinkStack(base);
}

// For everything with rules that has kUsed: whether it matches the empty text, and how few bytes
// end it. Begins with no text at all, and finds more until nothing changes. Other rules may have no
// body yet.
void Expressions::SettleRules() {
  const size_t count = store_.size();
  for (Node node = 0; node < count; ++node) {
    if (!HasRule(node) || !store_.Has(node, kUsed)) continue;
    store_.Set(node, kMatchesEmpty, store_.kind(node) == NodeKind::kRepeat && store_.b(node) == 0);
    SetRest(node, kNever);
  }
  uint64_t steps = 0;
  // In both directions in turn, and with the bodies of rules instead of these, which are elsewhere:
  // so a chain of rules takes no more rounds than one rule, whether references go up or down.
  bool upwards = false;
  const auto body_of = [this](Node node) {
    return store_.kind(node) == NodeKind::kRule ? store_.b(node) : node;
  };
  for (bool changed = true; changed && status_;) {
    changed = false;
    upwards = !upwards;
    for (size_t i = 0; i < count; ++i) {
      const auto node = static_cast<Node>(upwards ? i : count - 1 - i);
      if (!HasRule(node) || !store_.Has(node, kUsed)) continue;
      const Node a = body_of(store_.a(node));
      // The second part of a repetition is how often it occurs at least.
      const bool is_repeat = store_.kind(node) == NodeKind::kRepeat;
      const Node b = is_repeat ? store_.b(node) : body_of(store_.b(node));
      bool matches_empty = false;
      uint32_t rest = kNever;
      switch (store_.kind(node)) {
        case NodeKind::kSequence:
          matches_empty = MatchesEmpty(a) && MatchesEmpty(b);
          rest = NodeStore::AddRests(KnownRest(a), KnownRest(b));
          break;
        case NodeKind::kChoice:
          matches_empty = MatchesEmpty(a) || MatchesEmpty(b);
          rest = std::min(KnownRest(a), KnownRest(b));
          break;
        case NodeKind::kRepeat:
          matches_empty = b == 0 || MatchesEmpty(a);
          break;
        default:
          matches_empty = MatchesEmpty(b);
          rest = KnownRest(b);
      }
      if (matches_empty == MatchesEmpty(node) && (is_repeat || rest == KnownRest(node))) continue;
      changed = true;
      store_.Set(node, kMatchesEmpty, matches_empty);
      SetRest(node, rest);
    }
    steps += count;
    if (changed && steps > kMaxSettlingSteps) {
      SetError(ErrorCode::kUnsupported,
               "the constraint is too complex: too many of its rules "
               "refer to each other");
    }
  }
}

// Whatever texts of a node may begin with, but for what is in parts.
void Expressions::PushLeftParts(Node node) {
  switch (store_.kind(node)) {
    case NodeKind::kSequence:
      for (; store_.kind(node) == NodeKind::kSequence; node = store_.b(node)) {
        Push(store_.a(node));
        if (!MatchesEmpty(store_.a(node))) return;
      }
      Push(node);
      return;
    case NodeKind::kChoice:
      return PushList(NodeKind::kChoice, node);
    case NodeKind::kRepeat:
      Push(store_.a(node));
      return;
    default:
      Push(store_.b(node));
  }
}

// A rule whose texts may begin with texts of the same rule, or kNothing.
Node Expressions::FindLeftRecursion(Node start) {
  // Depth first: a node is under way until all that it may begin with is done, and marked then.
  const size_t base = store_.stack_size();
  Node found = kNothing;
  size_t depth = 0;
  Push(start);
  while (store_.stack_size() > base && status_ && found == kNothing) {
    const Node node = store_.stack(store_.stack_size() - 1);
    if (store_.Has(node, kUnderWay)) {
      store_.Set(node, kUnderWay, false);
      store_.Set(node, kMarked, true);
      --depth;
    }
    if (!HasRule(node) || store_.Has(node, kMarked)) {
      store_.Pop();
      continue;
    }
    store_.Set(node, kUnderWay, true);
    if (++depth > kMaxLeftDepth) {
      SetError(ErrorCode::kUnsupported,
               "the constraint is too complex: its rules refer too deeply to each other");
    }
    const size_t parts = store_.stack_size();
    PushLeftParts(node);
    for (const Node part : store_.StackFrom(parts)) {
      // The nodes under way that are above `part` make the circle, and one of them is a rule.
      if (!store_.Has(part, kUnderWay)) continue;
      for (size_t i = parts; i > base && found == kNothing; --i) {
        const Node other = store_.stack(i - 1);
        if (store_.Has(other, kUnderWay) && store_.kind(other) == NodeKind::kRule) found = other;
      }
    }
  }
  store_.ShrinkStack(base);
  for (Node node = 0; node < store_.size(); ++node) {
    store_.Set(node, kUnderWay, false);
    store_.Set(node, kMarked, false);
  }
  return found;
}

Expressions::RuleProblem Expressions::FindRuleProblem(Node start) {
  using Kind = RuleProblem::Kind;
  RuleProblem problem;
  if (!status_) return problem;
  BeginWork();
  MarkUsed(start);
  const size_t count = store_.size();
  for (Node node = 0; node < count && status_; ++node) {
    if (!store_.Has(node, kUsed)) continue;
    if (!HasRule(node)) Rest(node);
    if (store_.Has(node, kHasNoBody)) problem = {Kind::kUndefined, node};
  }
  if (problem.kind == Kind::kNone && status_) {
    SettleRules();
    const Node rule = FindLeftRecursion(start);
    if (rule != kNothing) problem = {Kind::kLeftRecursive, rule};
  }
  for (Node node = 0; node < count; ++node) {
    const bool is_rule = store_.Has(node, kUsed) && store_.kind(node) == NodeKind::kRule;
    if (is_rule && problem.kind == Kind::kNone && KnownRest(node) == kNever) {
      problem = {Kind::kNothing, node};
    }
    store_.Set(node, kUsed, false);
  }
  return problem;
}

Status Expressions::Finish(Node start) {
  const RuleProblem problem = FindRuleProblem(start);
  const uint32_t number = store_.a(problem.rule);
  switch (problem.kind) {
    case RuleProblem::Kind::kNone:
      if (status_ && Rest(start) == kNever) {
        SetError(ErrorCode::kUsage, "no text matches the constraint");
      }
      break;
    case RuleProblem::Kind::kUndefined:
      SetError(ErrorCode::kUsage, Format("rule {} of the constraint is not defined", number));
      break;
    case RuleProblem::Kind::kLeftRecursive:
      SetError(ErrorCode::kUnsupported,
               Format("rule {} of the constraint may begin with itself, which is not supported; "
                      "put what repeats to the right",
                      number));
      break;
    case RuleProblem::Kind::kNothing:
      SetError(ErrorCode::kUsage,
               Format("rule {} of the constraint matches no text that ends", number));
      break;
  }
  first_collected_ = static_cast<Node>(store_.size());
  return status_;
}

}  // namespace cria::grammar
