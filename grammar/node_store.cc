#include "grammar/node_store.h"

#include <algorithm>

#include "core/arena.h"

namespace cria::grammar {
namespace {

// What a node takes with its share of the table, which is never fuller than 4/5, of the stack and
// of the remembered derivatives.
constexpr size_t kBytesPerNode = 24;

}  // namespace

NodeStore::NodeStore(std::span<std::byte> memory) : records_(constants_) {
  const size_t capacity = memory.size() / kBytesPerNode;
  if (capacity > kNumConstants) {
    records_ = TakeArray<Record>(memory, capacity);
    table_ = TakeArray<Node>(memory, capacity + capacity / 4);
    stack_ = TakeArray<uint32_t>(memory, capacity / 2);
    derivatives_ = TakeArray<Derivative>(memory, memory.size() / sizeof(Derivative));
  }
  Add(NodeKind::kNothing, 0, 0, kNever, 0);
  Add(NodeKind::kEmpty, 0, 0, 0, kMatchesEmpty);
  const Node everything = Add(NodeKind::kNot, 0, 0, 0, kMatchesEmpty);
  if (!table_.empty()) Insert(everything);
}

bool NodeStore::NeedsC(uint32_t kind) {
  return kind == static_cast<uint32_t>(NodeKind::kBits) ||
         kind == static_cast<uint32_t>(NodeKind::kBytes) ||
         kind == static_cast<uint32_t>(NodeKind::kRepeat);
}

uint32_t NodeStore::Hash(const Record& record) {
  uint64_t hash = record.header & 0xF;
  hash = (hash ^ record.a) * 0x9E3779B97F4A7C15u;
  hash = (hash ^ (hash >> 29) ^ record.b) * 0x9E3779B97F4A7C15u;
  if (NeedsC(record.header & 0xF)) hash = (hash ^ (hash >> 29) ^ record.c) * 0x9E3779B97F4A7C15u;
  return static_cast<uint32_t>(hash >> 32);
}

Node NodeStore::Add(NodeKind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t bits) {
  if (size_ == records_.size()) return 0;
  records_[size_] = {.header = static_cast<uint32_t>(kind) | bits, .a = a, .b = b, .c = c};
  return static_cast<Node>(size_++);
}

Node NodeStore::Find(NodeKind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t bits) {
  const Record wanted = {.header = static_cast<uint32_t>(kind), .a = a, .b = b, .c = c};
  const bool needs_c = NeedsC(wanted.header);
  if (table_.empty()) return 0;
  size_t slot = Slot(Hash(wanted));
  for (; table_[slot] != 0; slot = slot + 1 == table_.size() ? 0 : slot + 1) {
    const Record& record = records_[table_[slot]];
    if ((record.header & 0xF) == wanted.header && record.a == a && record.b == b &&
        (!needs_c || record.c == c)) {
      return table_[slot];
    }
  }
  return table_[slot] = Add(kind, a, b, c, bits);
}

void NodeStore::Insert(Node node) {
  size_t slot = Slot(Hash(records_[node]));
  while (table_[slot] != 0) slot = slot + 1 == table_.size() ? 0 : slot + 1;
  table_[slot] = node;
}

template <typename Function>
void NodeStore::ForParts(Record& record, Function function) {
  switch (static_cast<NodeKind>(record.header & 0xF)) {
    case NodeKind::kNothing:
    case NodeKind::kEmpty:
    case NodeKind::kBits:
    case NodeKind::kRule:  // Its body is older than everything that is forgotten.
      return;
    case NodeKind::kRepeat:
    case NodeKind::kNot:
      return function(record.a);
    case NodeKind::kBytes:
      function(record.c);
      [[fallthrough]];
    case NodeKind::kSequence:
    case NodeKind::kChoice:
    case NodeKind::kBoth:
      function(record.a);
      function(record.b);
  }
}

void NodeStore::Collect(Node first, std::span<Node> roots) {
  for (const Node root : roots) Set(root, kMarked, true);
  // Parts are older than what they are in, so that one pass in each direction is enough.
  for (size_t i = size_; i > first; --i) {
    if (!Has(static_cast<Node>(i - 1), kMarked)) continue;
    ForParts(records_[i - 1], [this](Node part) { Set(part, kMarked, true); });
  }
  // The table is made anew below; until then it has the new numbers.
  size_t kept = first;
  for (size_t i = first; i < size_; ++i) {
    if (!Has(static_cast<Node>(i), kMarked)) continue;
    ForParts(records_[i], [&](Node& part) {
      if (part >= first) part = table_[part];
    });
    records_[kept] = records_[i];
    table_[i] = static_cast<Node>(kept++);
  }
  for (Node& root : roots) {
    if (root >= first) root = table_[root];
  }
  size_ = kept;
  std::ranges::fill(table_, 0);
  std::ranges::fill(derivatives_, Derivative{});
  for (size_t i = 0; i < size_; ++i) {
    const auto node = static_cast<Node>(i);
    Set(node, kMarked, false);
    // Add made these.
    if (node >= 2 && kind(node) != NodeKind::kRule) Insert(node);
  }
}

NodeStore::Derivative& NodeStore::Place(Node node, uint8_t byte) const {
  const uint64_t hash = ((uint64_t{node} << 8) | byte) * 0x9E3779B97F4A7C15u;
  return derivatives_[static_cast<size_t>(((hash >> 32) * derivatives_.size()) >> 32)];
}

uint32_t NodeStore::Remembered(Node node, uint8_t byte) const {
  if (derivatives_.empty()) return kUnknown;
  const Derivative& place = Place(node, byte);
  return place.node == node && place.byte == byte ? place.derivative : kUnknown;
}

void NodeStore::Remember(Node node, uint8_t byte, Node derivative) {
  if (derivatives_.empty()) return;
  Place(node, byte) = {.node = node, .byte = byte, .derivative = derivative};
}

}  // namespace cria::grammar
