// Derivatives of expressions, and what can still be ended.
#include <algorithm>

#include "grammar/expressions.h"

namespace cria::grammar {
namespace {

// Bounds, so that an expression that was made to be hard ends with an error: parts in parts (of
// some 200 bytes of the thread's stack each), and steps between two calls of BeginWork, of which a
// core of 3 GHz does some 6 million in a second.
constexpr size_t kMaxDepth = 400;
constexpr uint64_t kMaxWork = 3'000'000;
// After a way to an end is found, so many expressions are visited to find a shorter one.
constexpr size_t kMaxVisitsForShorter = 512;

}  // namespace

bool Expressions::Work(size_t steps) {
  work_ += steps;
  if (work_ <= kMaxWork) return static_cast<bool>(status_);
  SetError(ErrorCode::kUnsupported,
           "the constraint is too complex: its parts intersect, repeat "
           "or begin alike in too many ways");
  return false;
}

Node Expressions::Derive(Node node, uint8_t byte) {
  const size_t base = store_.stack_size();
  PushDerivatives(node, byte);
  Flatten(NodeKind::kChoice, base);
  size_t kept = base;
  // Rest uses the stack behind these.
  for (size_t i = base; i < store_.stack_size() && status_; ++i) {
    const Node option = store_.stack(i);
    if (Rest(option) != kNever) store_.stack(kept++) = option;
  }
  store_.ShrinkStack(status_ ? kept : base);
  return Combine(NodeKind::kChoice, base);
}

Node Expressions::WholeDerivative(Node node, uint8_t byte) {
  const uint32_t remembered = store_.Remembered(node, byte);
  if (remembered != NodeStore::kUnknown) return remembered;
  const size_t base = store_.stack_size();
  PushDerivatives(node, byte);
  const Node derivative = Combine(NodeKind::kChoice, base);
  if (status_) store_.Remember(node, byte, derivative);
  return derivative;
}

// Pushes the partial derivatives: options that together are the derivative, each with all that
// follows it, so that what is derived next is at its beginning.
void Expressions::PushDerivatives(Node node, uint8_t byte) {
  if (depth_ >= kMaxDepth) {
    return SetError(ErrorCode::kUnsupported,
                    "the constraint is too complex: its parts are nested too deeply");
  }
  ++depth_;
  while (Work(1)) {
    const size_t base = store_.stack_size();
    Node part = store_.a(node);
    Node next = kNothing;  // What is derived besides.
    Node tail = kEmpty;    // What follows the derivatives of `part`.
    switch (store_.kind(node)) {
      case NodeKind::kNothing:
      case NodeKind::kEmpty:
      case NodeKind::kBits:
        part = kNothing;
        break;
      case NodeKind::kBytes:
        if (((BitsOf(node, byte / 32) >> (byte % 32)) & 1) != 0) Push(kEmpty);
        part = kNothing;
        break;
      case NodeKind::kSequence:
        tail = store_.b(node);
        if (MatchesEmpty(part)) next = tail;
        break;
      case NodeKind::kChoice:
        next = store_.b(node);
        break;
      case NodeKind::kRepeat: {
        const uint32_t min = MatchesEmpty(part) ? 0 : store_.b(node);
        const uint32_t max = store_.c(node);
        tail = Repeat(part, min - (min == 0 ? 0 : 1), max - (max == kUnbounded ? 0 : 1));
        break;
      }
      case NodeKind::kRule:
        part = kNothing;
        Push(WholeDerivative(store_.b(node), byte));
        break;
      case NodeKind::kBoth:
        part = kNothing;
        Push(DeriveBoth(node, byte));
        break;
      case NodeKind::kNot:
        Push(Not(WholeDerivative(part, byte)));
        part = kNothing;
        break;
    }
    if (part != kNothing) {
      const bool is_list = store_.kind(part) == NodeKind::kChoice;
      if (is_list) {
        Push(WholeDerivative(part, byte));
      } else {
        PushDerivatives(part, byte);
      }
      if (tail != kEmpty) Flatten(NodeKind::kChoice, base);
      for (size_t i = base; i < store_.stack_size() && tail != kEmpty && status_; ++i) {
        store_.stack(i) = Sequence(store_.stack(i), tail);
      }
    }
    if (next == kNothing) break;
    if (tail != kEmpty && store_.kind(next) == NodeKind::kChoice) {
      // It may follow in several options, and be remembered.
      Push(WholeDerivative(next, byte));
      break;
    }
    node = next;
  }
  --depth_;
}

Node Expressions::DeriveBoth(Node node, uint8_t byte) {
  const size_t base = store_.stack_size();
  for (bool is_last = false; !is_last && status_; node = store_.b(node)) {
    is_last = store_.kind(node) != NodeKind::kBoth;
    const Node derivative = WholeDerivative(is_last ? node : store_.a(node), byte);
    Push(derivative);
    if (derivative == kNothing) break;
  }
  return Combine(NodeKind::kBoth, base);
}

// Not in intersections, whose other parts may demand more repetitions before the end.
Node Expressions::WithShortCounts(Node node, size_t num_parts) {
  const Node a = store_.a(node);
  const uint32_t b = store_.b(node);
  switch (store_.kind(node)) {
    case NodeKind::kChoice: {
      if (num_parts != kMaxShortParts) return node;
      const size_t base = store_.stack_size();
      for (; store_.kind(node) == NodeKind::kChoice; node = store_.b(node)) {
        Push(WithShortCounts(store_.a(node), num_parts - 1));
      }
      Push(WithShortCounts(node, num_parts - 1));
      return Combine(NodeKind::kChoice, base);
    }
    case NodeKind::kSequence: {
      const Node head = WithShortCounts(a, num_parts - 1);
      return Sequence(head, num_parts == 1 ? b : WithShortCounts(b, num_parts - 1));
    }
    case NodeKind::kRepeat: {
      const uint32_t max = store_.c(node);
      if (max == kUnbounded || max - b <= kMaxShortBytes) return node;
      return Repeat(a, b, b + kMaxShortBytes);
    }
    default:
      return node;
  }
}

// ---- The rest

uint32_t Expressions::KnownRest(Node node) const {
  switch (store_.kind(node)) {
    case NodeKind::kBits:
    case NodeKind::kBytes:
      return 1;
    case NodeKind::kRepeat: {
      if (MatchesEmpty(node)) return 0;
      const uint32_t rest = KnownRest(store_.a(node));
      if (rest >= kNever) return rest;
      return static_cast<uint32_t>(
          std::min<uint64_t>(uint64_t{rest} * store_.b(node), NodeStore::kMaxRest));
    }
    default:
      return store_.c(node);
  }
}

void Expressions::SetRest(Node node, uint32_t rest) {
  const NodeKind kind = store_.kind(node);
  if (kind == NodeKind::kRepeat || kind == NodeKind::kBytes) return;
  store_.SetC(node, rest);
}

uint32_t Expressions::Rest(Node node) {
  const uint32_t known = KnownRest(node);
  if (known != NodeStore::kUnknown) return known;
  if (!Work(1)) return kNever;
  if (depth_ >= kMaxDepth) {
    SetError(ErrorCode::kUnsupported,
             "the constraint is too complex: its parts are nested too deeply");
    return kNever;
  }
  ++depth_;
  uint32_t rest = kNever;
  switch (store_.kind(node)) {
    case NodeKind::kSequence:
      rest = Rest(store_.a(node));
      if (rest != kNever) rest = NodeStore::AddRests(rest, Rest(store_.b(node)));
      break;
    case NodeKind::kChoice: {
      Node option = node;
      for (; store_.kind(option) == NodeKind::kChoice; option = store_.b(option)) {
        rest = std::min(rest, Rest(store_.a(option)));
      }
      rest = std::min(rest, Rest(option));
      break;
    }
    case NodeKind::kRepeat:
      Rest(store_.a(node));
      rest = KnownRest(node);
      break;
    default:
      rest = Explore(node);
  }
  --depth_;
  if (!status_) return kNever;
  SetRest(node, rest);
  return rest;
}

// Finds the shortest way from an intersection or complement to an expression whose rest is known,
// by searching breadth first. All expressions on the way get their rest, or if there is no such
// way, all that were visited.
uint32_t Expressions::Explore(Node node) {
  const size_t base = store_.stack_size();
  size_t best = SIZE_MAX;  // Index of the last one of the shortest way.
  uint64_t best_rest = UINT64_MAX;
  size_t found_at = SIZE_MAX;
  if (!Push(node) || !Push(0)) {
    store_.ShrinkStack(base);
    return kNever;
  }
  store_.Set(node, kMarked, true);
  // Each one is followed by the index of the one before it on the way to it.
  size_t level_end = store_.stack_size();
  uint64_t depth = 1;
  for (size_t i = base; i < store_.stack_size() && status_; i += 2) {
    if (i == level_end) {
      level_end = store_.stack_size();
      ++depth;
    }
    if (i != base && KnownRest(store_.stack(i)) != NodeStore::kUnknown) continue;
    if (depth >= best_rest || (found_at != SIZE_MAX && i > found_at + 2 * kMaxVisitsForShorter)) {
      break;
    }
    for (size_t k = 0; k < num_classes_ && status_; ++k) {
      const Node next = WholeDerivative(store_.stack(i), bytes_of_classes_[k]);
      const uint32_t rest = KnownRest(next);
      if (rest == kNever || store_.Has(next, kMarked)) continue;
      store_.Set(next, kMarked, true);
      Push(next);
      Push(static_cast<uint32_t>(i));
      if (rest != NodeStore::kUnknown && depth + rest < best_rest) {
        best_rest = depth + rest;
        best = store_.stack_size() - 2;
        if (found_at == SIZE_MAX) found_at = i;
      }
    }
  }
  uint32_t rest = kNever;
  if (best != SIZE_MAX) rest = KnownRest(store_.stack(best));
  for (size_t i = base; i < store_.stack_size(); i += 2) {
    store_.Set(store_.stack(i), kMarked, false);
    if (best == SIZE_MAX && status_) SetRest(store_.stack(i), kNever);
  }
  for (size_t i = best; best != SIZE_MAX && i != base;) {
    i = store_.stack(i + 1);
    rest = NodeStore::AddRests(rest, 1);
    if (status_) SetRest(store_.stack(i), rest);
  }
  store_.ShrinkStack(base);
  return rest;
}

Result<bool> Expressions::IsNothing(Node node) {
  BeginWork();
  if (HasRule(node)) {
    SetError(ErrorCode::kUnsupported, "an intersection with a recursive part is not supported");
  }
  const bool is_nothing = Rest(node) == kNever;
  if (!status_) return std::unexpected(status_.error());
  return is_nothing;
}

Result<bool> Expressions::IsDisjoint(Node one, Node other) { return IsNothing(Both(one, other)); }

}  // namespace cria::grammar
