#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cria/error.h"
#include "grammar/byte_set.h"
#include "grammar/node_store.h"

namespace cria::grammar {

// `max` of a repetition without an end.
inline constexpr uint32_t kUnbounded = UINT32_MAX;

// An inclusive range of code points.
struct CodePointRange {
  uint32_t first, last;
};

// Expressions over bytes, in fixed memory: regular expressions with intersection and complement,
// and references to rules, which may be recursive, so that a grammar is a set of rules.
// Brzozowski's derivatives step through them (Derivatives of Regular Expressions, 1964), as sets of
// partial derivatives (Antimirov 1996).
//
// Equal nodes are equal expressions. Nothing fails while an expression is built: if memory is used
// up or something is not allowed, status() says so from then on, and the results are kNothing. A
// reader checks status() at its end, and in long loops.
class Expressions {
 public:
  static constexpr Node kNothing = 0;     // Matches no text.
  static constexpr Node kEmpty = 1;       // Matches the empty text alone.
  static constexpr Node kEverything = 2;  // Matches all texts, valid UTF-8 or not.

  // `memory` must be aligned to 4 bytes.
  explicit Expressions(std::span<std::byte> memory) : store_(memory) {}

  Node Byte(uint8_t byte);
  Node Bytes(const ByteSet& set);     // One byte of the set.
  Node Text(std::string_view bytes);  // These bytes in this order.
  Node Sequence(Node first, Node second);
  Node Sequence(std::span<const Node> parts);
  Node Choice(Node one, Node other);
  // Much faster than adding one option after the other. kNothing if there are none.
  Node Choice(std::span<const Node> options);
  Node Optional(Node node) { return Choice(node, kEmpty); }
  Node Repeat(Node node, uint32_t min, uint32_t max);  // `max` may be kUnbounded.
  // Intersection and complement are for expressions without rules.
  Node Both(Node one, Node other);
  Node Not(Node node);
  bool HasRule(Node node) const { return store_.Has(node, kHasRule); }

  // A new rule; its body comes later, once.
  Node NewRule();
  void Define(Node rule, Node body);

  // One character of the ranges, which are sorted and disjoint, as UTF-8. Surrogates are left out.
  Node Characters(std::span<const CodePointRange> ranges);

  // Whether the empty text matches. For an expression with rules, only after Finish.
  bool MatchesEmpty(Node node) const { return store_.Has(node, kMatchesEmpty); }
  // Whether no text matches (both of them). Only for expressions without rules. Explores
  // derivatives; an error if there are too many. These need memory, too.
  Result<bool> IsNothing(Node node);
  Result<bool> IsDisjoint(Node one, Node other);

  const Status& status() const { return status_; }
  // The first error stays.
  void SetError(ErrorCode code, std::string_view sentence);

  // What is wrong with a rule that the expression refers to.
  struct RuleProblem {
    enum class Kind : uint8_t { kNone, kUndefined, kLeftRecursive, kNothing };
    Kind kind = Kind::kNone;
    Node rule = kNothing;  // As NewRule returned it.
  };
  // So that a reader can name the rule. kNothing: no text that ends matches the rule.
  RuleProblem FindRuleProblem(Node start);
  // After building: fails if status() is an error, there is a problem with a rule, or the whole
  // expression matches no text. Then nothing but what follows is called.
  Status Finish(Node start);

  // -- After Finish, for the automaton.

  // All that is computed until the next call is limited: an error if it is too much.
  void BeginWork() { work_ = 0; }
  // What matches after this byte, without what can never be ended; kNothing if there is an error.
  Node Derive(Node node, uint8_t byte);
  // The fewest bytes with which the expression can be ended, or more where it intersects; by one
  // byte less after some byte. kNever: nothing matches.
  static constexpr uint32_t kNever = NodeStore::kNever;
  uint32_t Rest(Node node);
  // An expression that goes on and ends like `node` for the next kMaxShortBytes bytes: repetitions
  // that may go on for longer than that end then, so that all of them are the same.
  static constexpr uint32_t kMaxShortBytes = 256;
  Node WithShortCounts(Node node) { return WithShortCounts(node, kMaxShortParts); }
  // The bytes that no set of the expression tells apart have the same class.
  size_t num_classes() const { return num_classes_; }
  const std::array<uint8_t, 256>& classes() const { return classes_; }
  uint8_t ByteOfClass(size_t byte_class) const { return bytes_of_classes_[byte_class]; }
  // Forgets the expressions that were made after Finish, but for those that `roots` need; these
  // get their new numbers.
  void Collect(std::span<Node> roots) { store_.Collect(first_collected_, roots); }
  // Continues after kOutOfMemory, when something was forgotten.
  void ClearError() { status_ = {}; }
  NodeStore& store() { return store_; }

 private:
  void SetTooSmall();
  // Combines the expressions of a list: all of the stack from `base` on, which it removes.
  Node Combine(NodeKind kind, size_t base, bool share_heads = true);
  void Flatten(NodeKind kind, size_t base);
  void MergeSets(NodeKind kind, size_t base);
  void MergeCounts(size_t base);
  void ShareHeads(size_t base);
  Node BuildList(NodeKind kind, size_t base);
  bool Push(Node node);
  void PushList(NodeKind kind, Node node);  // One by one, if it is of the kind.
  Node Find(NodeKind kind, uint32_t a, uint32_t b, uint32_t c, uint32_t bits);
  ByteSet SetOf(Node bytes) const;
  uint32_t BitsOf(Node bytes, size_t part) const;  // The 32 bits from 32 × `part` on.
  void Classify(const ByteSet& set);
  bool IsStar(Node node) const;
  Node Head(Node node) const;
  Node Tail(Node node) const;

  Node WholeDerivative(Node node, uint8_t byte);
  void PushDerivatives(Node node, uint8_t byte);
  Node DeriveBoth(Node node, uint8_t byte);
  static constexpr size_t kMaxShortParts = 8;  // Parts of a sequence that are looked at.
  Node WithShortCounts(Node node, size_t num_parts);
  bool Work(size_t steps);  // False if it was too much.

  // What is known of Rest without exploring.
  uint32_t KnownRest(Node node) const;
  uint32_t Explore(Node node);
  void SetRest(Node node, uint32_t rest);

  void MarkUsed(Node start);
  void SettleRules();
  Node FindLeftRecursion(Node start);
  void PushLeftParts(Node node);

  NodeStore store_;
  Status status_;
  std::array<uint8_t, 256> classes_ = {};
  std::array<uint8_t, 256> bytes_of_classes_ = {};
  size_t num_classes_ = 1;
  uint32_t num_rules_ = 0;
  Node first_collected_ = 0;  // Nodes from here on were made after Finish; 0 before it.
  size_t depth_ = 0;          // How many calls of PushDerivatives are in each other.
  uint64_t work_ = 0;         // Steps since BeginWork.
};

}  // namespace cria::grammar
