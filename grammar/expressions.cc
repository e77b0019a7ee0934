#include "grammar/expressions.h"

#include <algorithm>
#include <string>

namespace cria::grammar {
namespace {

// An expression as a body that is repeated, once if it is no repetition, and what follows.
struct Counted {
  Node body, tail;
  uint32_t min, max;
};

Counted CountedOf(const NodeStore& store, Node node) {
  const bool is_sequence = store.kind(node) == NodeKind::kSequence;
  const Node head = is_sequence ? store.a(node) : node;
  const Node tail = is_sequence ? store.b(node) : Expressions::kEmpty;
  if (store.kind(head) != NodeKind::kRepeat) return {head, tail, 1, 1};
  return {store.a(head), tail, store.b(head), store.c(head)};
}

struct NodeOrder {
  enum Kind : uint8_t { kByNumber, kByHead, kByCounted };

  const NodeStore* store;
  Kind kind;

  uint64_t Key(Node node) const {
    if (kind == kByNumber) return node;
    const Counted counted = CountedOf(*store, node);
    if (kind == kByCounted) return (uint64_t{counted.tail} << 32) | counted.body;
    const Node head = store->kind(node) == NodeKind::kSequence ? store->a(node) : node;
    return (uint64_t{head} << 32) | node;
  }
  // The larger ones first, but of what is counted, the smallest number.
  bool operator()(Node one, Node other) const {
    const uint64_t key = Key(one);
    const uint64_t other_key = Key(other);
    if (key != other_key || kind != kByCounted) return key > other_key;
    return CountedOf(*store, one).min < CountedOf(*store, other).min;
  }
};

}  // namespace

void Expressions::SetTooSmall() {
  SetError(ErrorCode::kOutOfMemory,
           "the constraint needs more memory than there is for constraints; make it simpler");
}

void Expressions::SetError(ErrorCode code, std::string_view sentence) {
  if (status_) status_ = Fail(code, std::string(sentence));
}

Node Expressions::Find(NodeKind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t bits) {
  if (!status_) return kNothing;
  const Node node = store_.Find(kind, a, b, c, bits);
  if (node == kNothing) SetTooSmall();
  return node;
}

bool Expressions::Push(Node node) {
  if (store_.Push(node)) return true;
  SetTooSmall();
  return false;
}

void Expressions::PushList(NodeKind kind, Node node) {
  for (; store_.kind(node) == kind; node = store_.b(node)) {
    if (!Push(store_.a(node))) return;
  }
  Push(node);
}

// ---- Bytes

Node Expressions::Byte(uint8_t byte) {
  ByteSet set;
  set.Add(byte);
  return Bytes(set);
}

Node Expressions::Bytes(const ByteSet& set) {
  if (set.empty()) return kNothing;
  std::array<uint32_t, 9> parts = {};
  for (size_t i = 0; i < 8; ++i) {
    parts[i] = static_cast<uint32_t>(set.words[i / 2] >> (32 * (i % 2)));
  }
  std::array<Node, 3> bits = {};
  for (size_t i = 0; i < 3; ++i) {
    if ((parts[3 * i] | parts[3 * i + 1] | parts[3 * i + 2]) == 0) continue;
    bits[i] = Find(NodeKind::kBits, parts[3 * i], parts[3 * i + 1], parts[3 * i + 2], 0);
  }
  if (!status_) return kNothing;
  const size_t size = store_.size();
  const Node node = Find(NodeKind::kBytes, bits[0], bits[1], bits[2], 0);
  // After Finish, all sets are unions and intersections of those that were there.
  if (first_collected_ == 0 && store_.size() != size) Classify(set);
  return node;
}

uint32_t Expressions::BitsOf(Node bytes, size_t part) const {
  const auto field = [this](Node node, size_t index) {
    return index == 0 ? store_.a(node) : index == 1 ? store_.b(node) : store_.c(node);
  };
  const Node bits = field(bytes, part / 3);
  return bits == kNothing ? 0 : field(bits, part % 3);
}

ByteSet Expressions::SetOf(Node bytes) const {
  ByteSet set;
  for (size_t i = 0; i < 8; ++i) {
    set.words[i / 2] |= uint64_t{BitsOf(bytes, i)} << (32 * (i % 2));
  }
  return set;
}

void Expressions::Classify(const ByteSet& set) {
  // A class of which a part is in the set is divided: those in the set get a new class, unless its
  // first byte is one of them, which stays.
  std::array<uint8_t, 256> divided = {};
  for (size_t byte = 0; byte < 256; ++byte) {
    const uint8_t old_class = classes_[byte];
    const uint8_t first = bytes_of_classes_[old_class];
    if (set.Has(static_cast<uint8_t>(byte)) == set.Has(first)) continue;
    if (divided[old_class] == 0) {
      divided[old_class] = static_cast<uint8_t>(num_classes_);
      bytes_of_classes_[num_classes_++] = static_cast<uint8_t>(byte);
    }
    classes_[byte] = divided[old_class];
  }
}

Node Expressions::Text(std::string_view bytes) {
  Node node = kEmpty;
  for (size_t i = bytes.size(); i > 0 && status_; --i) {
    node = Sequence(Byte(static_cast<uint8_t>(bytes[i - 1])), node);
  }
  return node;
}

// ---- Sequences and repetitions

Node Expressions::Head(Node node) const {
  return store_.kind(node) == NodeKind::kSequence ? store_.a(node) : node;
}

Node Expressions::Tail(Node node) const {
  return store_.kind(node) == NodeKind::kSequence ? store_.b(node) : kEmpty;
}

// Whether it twice is the same as it once.
bool Expressions::IsStar(Node node) const {
  return node == kEverything || (store_.kind(node) == NodeKind::kRepeat && store_.b(node) == 0 &&
                                 store_.c(node) == kUnbounded);
}

Node Expressions::Sequence(Node first, Node second) {
  // The first one's parts are put before the second, from the last one on.
  const size_t base = store_.stack_size();
  PushList(NodeKind::kSequence, first);
  Node result = second;
  while (store_.stack_size() > base) {
    const Node part = store_.Pop();
    const uint32_t rest = KnownRest(part);
    const uint32_t result_rest = KnownRest(result);
    if (part == kNothing || result == kNothing || rest == kNever || result_rest == kNever) {
      result = kNothing;
    } else if (result == kEmpty) {
      result = part;
    } else if (part != kEmpty && !(IsStar(part) && Head(result) == part)) {
      const bool has_rule = HasRule(part) || HasRule(result);
      const bool matches_empty = MatchesEmpty(part) && MatchesEmpty(result);
      result = Find(NodeKind::kSequence, part, result, NodeStore::AddRests(rest, result_rest),
                    (has_rule ? kHasRule : 0) | (matches_empty ? kMatchesEmpty : 0));
    }
  }
  return status_ ? result : kNothing;
}

Node Expressions::Sequence(std::span<const Node> parts) {
  Node result = kEmpty;
  for (size_t i = parts.size(); i > 0; --i) result = Sequence(parts[i - 1], result);
  return result;
}

Node Expressions::Repeat(Node node, uint32_t min, uint32_t max) {
  if (min > max) return kNothing;
  if (MatchesEmpty(node)) min = 0;
  if (max == 0 || node == kEmpty) return kEmpty;
  if (node == kNothing) return min == 0 ? kEmpty : kNothing;
  if (max == 1) return min == 1 ? node : Optional(node);
  const bool is_star =
      store_.kind(node) == NodeKind::kRepeat && store_.b(node) == 0 && store_.c(node) == kUnbounded;
  if (is_star || node == kEverything) return node;
  const uint32_t has_rule = HasRule(node) ? kHasRule : 0;
  return Find(NodeKind::kRepeat, node, min, max, has_rule | (min == 0 ? kMatchesEmpty : 0));
}

// ---- Lists: choices and intersections

Node Expressions::Choice(Node one, Node other) {
  const size_t base = store_.stack_size();
  Push(one);
  Push(other);
  return Combine(NodeKind::kChoice, base);
}

Node Expressions::Choice(std::span<const Node> options) {
  const size_t base = store_.stack_size();
  for (const Node option : options) Push(option);
  return Combine(NodeKind::kChoice, base);
}

Node Expressions::Both(Node one, Node other) {
  if (HasRule(one) || HasRule(other)) {
    SetError(ErrorCode::kUnsupported, "an intersection with a recursive part is not supported");
  }
  const size_t base = store_.stack_size();
  Push(one);
  Push(other);
  return Combine(NodeKind::kBoth, base);
}

Node Expressions::Not(Node node) {
  if (HasRule(node)) {
    SetError(ErrorCode::kUnsupported, "the complement of a recursive part is not supported");
  }
  if (!status_) return kNothing;
  if (store_.kind(node) == NodeKind::kNot) return store_.a(node);
  const bool matches_empty = !MatchesEmpty(node);
  return Find(NodeKind::kNot, node, 0, matches_empty ? 0 : NodeStore::kUnknown,
              matches_empty ? kMatchesEmpty : 0);
}

// Instead of lists in the list, what they have is in it: once, even if many lists have the same
// end, which is one node.
void Expressions::Flatten(NodeKind kind, size_t base) {
  const Node identity = kind == NodeKind::kChoice ? kNothing : kEverything;
  const size_t end = store_.stack_size();
  for (size_t i = base; i < end; ++i) {
    Node node = store_.stack(i);
    for (; store_.kind(node) == kind && !store_.Has(node, kUnderWay); node = store_.b(node)) {
      store_.Set(node, kUnderWay, true);
      Push(store_.a(node));
    }
    if (node != store_.stack(i) && store_.kind(node) != kind) Push(node);
  }
  for (size_t i = base; i < end; ++i) {
    Node node = store_.stack(i);
    if (store_.kind(node) == kind) store_.stack(i) = identity;
    for (; store_.kind(node) == kind && store_.Has(node, kUnderWay); node = store_.b(node)) {
      store_.Set(node, kUnderWay, false);
    }
  }
}

Node Expressions::Combine(NodeKind kind, size_t base, bool share_heads) {
  const Node identity = kind == NodeKind::kChoice ? kNothing : kEverything;
  const Node dominant = kind == NodeKind::kChoice ? kEverything : kNothing;
  Flatten(kind, base);
  std::span<uint32_t> list = store_.StackFrom(base);
  Work(list.size());
  std::ranges::sort(list, NodeOrder{&store_, NodeOrder::kByNumber});
  size_t kept = 0;
  bool dominated = false;
  for (const Node node : list) {
    if (node == identity || (kept != 0 && list[kept - 1] == node)) continue;
    dominated |= node == dominant;
    list[kept++] = node;
  }
  store_.ShrinkStack(base + kept);
  if (dominated || !status_) {
    store_.ShrinkStack(base);
    return status_ ? dominant : kNothing;
  }
  if (kept > 1) {
    MergeSets(kind, base);
    if (kind == NodeKind::kChoice) MergeCounts(base);
    if (kind == NodeKind::kChoice && share_heads) ShareHeads(base);
  }
  const Node result = store_.stack_size() == base ? identity : BuildList(kind, base);
  store_.ShrinkStack(base);
  return status_ ? result : kNothing;
}

// All sets of bytes become one.
void Expressions::MergeSets(NodeKind kind, size_t base) {
  std::span<uint32_t> list = store_.StackFrom(base);
  const auto is_set = [this](Node node) { return store_.kind(node) == NodeKind::kBytes; };
  if (std::ranges::count_if(list, is_set) < 2) return;
  ByteSet merged;
  size_t num_sets = 0;
  size_t kept = 0;
  for (const Node node : list) {
    if (!is_set(node)) {
      list[kept++] = node;
    } else if (num_sets++ == 0) {
      merged = SetOf(node);
    } else if (kind == NodeKind::kChoice) {
      merged |= SetOf(node);
    } else {
      merged &= SetOf(node);
    }
  }
  store_.ShrinkStack(base + kept);
  const Node set = Bytes(merged);
  Push(set);
  std::ranges::sort(store_.StackFrom(base), NodeOrder{&store_, NodeOrder::kByNumber});
}

// Options that begin with more or fewer of the same, and go on alike, become one if no number is
// missing between them. So, repetitions in repetitions do not become as many options as there are
// ways to count.
void Expressions::MergeCounts(size_t base) {
  const std::span<uint32_t> list = store_.StackFrom(base);
  const auto is_counted = [this](Node node) {
    return store_.kind(Head(node)) == NodeKind::kRepeat;
  };
  if (std::ranges::none_of(list, is_counted)) return;
  std::ranges::sort(list, NodeOrder{&store_, NodeOrder::kByCounted});
  size_t kept = 1;
  for (size_t i = 1; i < list.size() && status_; ++i) {
    const Counted last = CountedOf(store_, list[kept - 1]);
    const Counted next = CountedOf(store_, list[i]);
    if (last.body != next.body || last.tail != next.tail ||
        (last.max != kUnbounded && next.min > last.max + 1)) {
      list[kept++] = list[i];
      continue;
    }
    const Node merged = Repeat(last.body, last.min, std::max(last.max, next.max));
    list[kept - 1] = Sequence(merged, last.tail);
  }
  store_.ShrinkStack(base + kept);
  std::ranges::sort(store_.StackFrom(base), NodeOrder{&store_, NodeOrder::kByNumber});
}

// Options with the same beginning become one: it once, then a choice of what follows. So, texts
// become a tree by their beginnings, and an ambiguous grammar shares what follows. What follows is
// left as it is until a derivative comes there: else, this could take exponential time.
void Expressions::ShareHeads(size_t base) {
  std::span<uint32_t> list = store_.StackFrom(base);
  std::ranges::sort(list, NodeOrder{&store_, NodeOrder::kByHead});
  size_t kept = 0;
  for (size_t i = 0, end = 0; i < list.size() && status_; i = end) {
    const Node head = Head(list[i]);
    end = i + 1;
    while (end < list.size() && Head(list[end]) == head) ++end;
    Node option = list[i];
    if (end - i > 1) {
      const size_t tails = store_.stack_size();
      for (size_t k = i; k < end; ++k) Push(Tail(list[k]));
      option = Sequence(head, Combine(NodeKind::kChoice, tails, false));
    }
    if (option != kNothing) list[kept++] = option;
  }
  store_.ShrinkStack(base + kept);
  std::ranges::sort(store_.StackFrom(base), NodeOrder{&store_, NodeOrder::kByNumber});
}

Node Expressions::BuildList(NodeKind kind, size_t base) {
  std::span<uint32_t> list = store_.StackFrom(base);
  const bool is_choice = kind == NodeKind::kChoice;
  if (list.back() == kNothing) return kNothing;  // An intersection's sets made it.
  size_t num_matching_empty = 0;
  for (const Node node : list) num_matching_empty += MatchesEmpty(node) ? 1 : 0;
  if (list.back() == kEmpty && list.size() > 1) {
    // The empty text alone, which has the smallest number, is in another option, or the only text
    // of an intersection.
    if (!is_choice) return num_matching_empty == list.size() ? kEmpty : kNothing;
    if (num_matching_empty > 1) list = list.first(list.size() - 1);
  }
  Node result = list.back();
  for (size_t i = list.size() - 1; i > 0 && status_; --i) {
    const Node node = list[i - 1];
    const bool matches_empty = is_choice ? MatchesEmpty(node) || MatchesEmpty(result)
                                         : MatchesEmpty(node) && MatchesEmpty(result);
    uint32_t rest = NodeStore::kUnknown;
    if (matches_empty) {
      rest = 0;
    } else if (is_choice) {
      const uint32_t one = KnownRest(node);
      const uint32_t other = KnownRest(result);
      // kUnknown is the larger one of all.
      rest =
          std::max(one, other) == NodeStore::kUnknown ? NodeStore::kUnknown : std::min(one, other);
    }
    const bool has_rule = HasRule(node) || HasRule(result);
    result = Find(kind, node, result, rest,
                  (has_rule ? kHasRule : 0) | (matches_empty ? kMatchesEmpty : 0));
  }
  return result;
}

// ---- Rules

Node Expressions::NewRule() {
  if (!status_) return kNothing;
  const Node rule = store_.Add(NodeKind::kRule, ++num_rules_, kNothing, NodeStore::kUnknown,
                               kHasRule | kHasNoBody);
  if (rule == kNothing) SetTooSmall();
  return rule;
}

void Expressions::Define(Node rule, Node body) {
  if (!status_) return;
  store_.SetB(rule, body);
  store_.Set(rule, kHasNoBody, false);
}

}  // namespace cria::grammar
