#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace cria::grammar {

// Number of an expression; equal expressions have equal numbers.
using Node = uint32_t;

// What a node is, and what its fields are.
enum class NodeKind : uint8_t {
  kNothing,
  kEmpty,
  kBits,      // 96 bits of a set of bytes: `a`, `b`, `c`. Never an expression by itself.
  kBytes,     // One byte of a set: its nodes of bits are `a`, `b`, `c`, where kNothing is 0.
  kSequence,  // `a`, which is no sequence, then `b`.
  kChoice,    // `a`, which is no choice, or `b`; options are in falling order.
  kRepeat,    // `a`, `b` to `c` times.
  kRule,      // The rule with the number `a` and the body `b`.
  kBoth,      // `a` and `b`, like kChoice.
  kNot,       // What `a` is not.
};

// Bits of a node besides its kind.
inline constexpr uint32_t kHasRule = 1 << 4;       // A rule is in it.
inline constexpr uint32_t kMatchesEmpty = 1 << 5;  // The empty text matches.
inline constexpr uint32_t kMarked = 1 << 6;        // For functions that visit each node once.
inline constexpr uint32_t kUnderWay = 1 << 7;      // Also.
inline constexpr uint32_t kUsed = 1 << 9;          // Also.
inline constexpr uint32_t kHasNoBody = 1 << 8;     // A rule without a body so far.

// The nodes of expressions, each of them once, and what working with them needs, in fixed memory: a
// stack of nodes, and a small table that remembers derivatives.
class NodeStore {
 public:
  // The fewest bytes that end an expression: values that are no number of bytes.
  static constexpr uint32_t kUnknown = 0xFFFFFFFF;
  static constexpr uint32_t kNever = 0xFFFFFFFE;
  static constexpr uint32_t kMaxRest = 0x7FFFFFFF;
  static uint32_t AddRests(uint32_t one, uint32_t other) {
    if (one == kUnknown || other == kUnknown) return kUnknown;
    if (one == kNever || other == kNever) return kNever;
    return one + other < kMaxRest ? one + other : kMaxRest;
  }
  // The numbers that every store begins with: Expressions::kNothing, kEmpty, kEverything.
  static constexpr Node kNumConstants = 3;

  // `memory` must be aligned to 4 bytes. With too little of it, there are only the constants.
  explicit NodeStore(std::span<std::byte> memory);
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  NodeKind kind(Node node) const { return static_cast<NodeKind>(records_[node].header & 0xF); }
  bool Has(Node node, uint32_t bit) const { return (records_[node].header & bit) != 0; }
  void Set(Node node, uint32_t bit, bool value) {
    records_[node].header = (records_[node].header & ~bit) | (value ? bit : 0);
  }
  uint32_t a(Node node) const { return records_[node].a; }
  uint32_t b(Node node) const { return records_[node].b; }
  uint32_t c(Node node) const { return records_[node].c; }
  // The body of a rule.
  void SetB(Node node, uint32_t value) { records_[node].b = value; }
  // The fewest bytes that end it, for all kinds that do not use `c` otherwise.
  void SetC(Node node, uint32_t value) { records_[node].c = value; }
  // A number of 16 bits that the automaton sets; 0 at first.
  uint16_t tag(Node node) const { return static_cast<uint16_t>(records_[node].header >> 16); }
  void SetTag(Node node, uint16_t tag) {
    records_[node].header = (records_[node].header & 0xFFFF) | (uint32_t{tag} << 16);
  }
  size_t size() const { return size_; }

  // The node of this kind and fields. `bits` and, unless the kind has it, `c` must follow from
  // these. kNothing if there is no memory for a new one.
  Node Find(NodeKind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t bits);
  // A node that is equal to no other.
  Node Add(NodeKind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t bits);

  // Forgets the nodes from `first` on that neither `roots` nor their parts are; the others get new
  // numbers in the same order.
  void Collect(Node first, std::span<Node> roots);

  // The stack. Push fails if it is full.
  bool Push(uint32_t value) {
    if (stack_size_ == stack_.size()) return false;
    stack_[stack_size_++] = value;
    return true;
  }
  uint32_t Pop() { return stack_[--stack_size_]; }
  size_t stack_size() const { return stack_size_; }
  void ShrinkStack(size_t size) { stack_size_ = size; }
  uint32_t& stack(size_t index) { return stack_[index]; }
  std::span<uint32_t> StackFrom(size_t base) { return stack_.subspan(base, stack_size_ - base); }

  // The derivative that was remembered, or kUnknown.
  uint32_t Remembered(Node node, uint8_t byte) const;
  void Remember(Node node, uint8_t byte, Node derivative);

 private:
  struct Record {
    uint32_t header;  // Kind in bits 0 to 3, bits of the node up to 15, then the tag.
    uint32_t a, b, c;
  };
  struct Derivative {
    Node node;
    uint32_t byte;
    Node derivative;
  };

  size_t Slot(uint32_t hash) const {
    return static_cast<size_t>((uint64_t{hash} * table_.size()) >> 32);
  }
  static bool NeedsC(uint32_t kind);
  static uint32_t Hash(const Record& record);
  Derivative& Place(Node node, uint8_t byte) const;
  // What `function` says of each part of a node that is a node.
  template <typename Function>
  static void ForParts(Record& record, Function function);
  void Insert(Node node);

  std::array<Record, kNumConstants> constants_ = {};  // Only used without memory.
  std::span<Record> records_;
  std::span<Node> table_;  // By hash with linear probing; kNothing: free.
  std::span<uint32_t> stack_;
  std::span<Derivative> derivatives_;  // The latest of each place.
  size_t size_ = 0;
  size_t stack_size_ = 0;
};

}  // namespace cria::grammar
