#include "grammar/automaton.h"

#include <algorithm>

#include "core/arena.h"

namespace cria::grammar {
namespace {

constexpr size_t kMaxStates = 0xFFFF;

std::unexpected<Error> TooSmall() {
  return Fail(ErrorCode::kOutOfMemory,
              "the constraint needs more memory than there is for constraints; make it simpler");
}

}  // namespace

Automaton::Automaton(std::span<std::byte> memory, Expressions* expressions)
    : expressions_(expressions), stride_(expressions->num_classes() + 1) {
  const size_t state_bytes =
      sizeof(Node) + sizeof(uint32_t) + sizeof(uint16_t) + stride_ * sizeof(State);
  const size_t capacity = std::min(memory.size() / state_bytes, kMaxStates);
  nodes_ = TakeArray<Node>(memory, capacity);
  rests_ = TakeArray<uint32_t>(memory, capacity);
  masks_ = TakeArray<uint16_t>(memory, capacity);
  rows_ = TakeArray<State>(memory, capacity * stride_);
}

Status Automaton::Begin(Node start) {
  if (nodes_.size() <= kFirst) return TooSmall();
  AddState(Expressions::kNothing, Expressions::kNever);
  AddState(Expressions::kNothing, Expressions::kNever);
  std::fill_n(Row(kDead), stride_, kDead);
  StateOf(start);
  return expressions_->status();
}

Automaton::State Automaton::AddState(Node node, uint32_t rest) {
  const auto state = static_cast<State>(num_states_++);
  nodes_[state] = node;
  rests_[state] = rest;
  masks_[state] = kNoMask;
  std::fill_n(Row(state), stride_, kUnknown);
  Row(state)[stay()] = state;
  return state;
}

// kUnknown if there is no memory for it.
Automaton::State Automaton::StateOf(Node node) {
  if (node == Expressions::kNothing) return kDead;
  const State known = expressions_->store().tag(node);
  if (known != 0) return known;
  const uint32_t rest = expressions_->Rest(node);
  if (!expressions_->status() || num_states_ == nodes_.size()) return kUnknown;
  const State state = AddState(node, rest);
  expressions_->store().SetTag(node, state);
  return state;
}

Status Automaton::Step(std::span<State> path, uint8_t byte) {
  const uint8_t byte_class = classes()[byte];
  const size_t from = path.size() - 2;
  path.back() = Row(path[from])[byte_class];
  if (path.back() != kUnknown) return {};
  CRIA_RETURN_IF_ERROR(Make(
      path,
      [](Expressions& expressions, Node node, uint8_t of_class) {
        return expressions.Derive(node, of_class);
      },
      expressions_->ByteOfClass(byte_class)));
  Row(path[from])[byte_class] = path.back();
  return {};
}

Status Automaton::StepToSimilar(std::span<State> path) {
  return Make(
      path,
      [](Expressions& expressions, Node node, uint8_t) {
        return expressions.WithShortCounts(node);
      },
      0);
}

Status Automaton::Make(std::span<State> path, Derivation derive, uint8_t byte) {
  const size_t from = path.size() - 2;
  for (bool has_collected = false;; has_collected = true) {
    const Node node = derive(*expressions_, nodes_[path[from]], byte);
    if (expressions_->status()) {
      path.back() = StateOf(node);
      if (path.back() != kUnknown) return {};
    }
    Status status = expressions_->status();
    expressions_->ClearError();
    if (!status && status.error().code() != ErrorCode::kOutOfMemory) return status;
    if (has_collected) return TooSmall();
    Collect(path.first(path.size() - 1));
  }
}

void Automaton::Collect(std::span<State> path) {
  ++num_collections_;
  // `rests_` has the new numbers for now; those that go have kDead.
  NodeStore& store = expressions_->store();
  for (size_t i = 0; i < num_states_; ++i) {
    rests_[i] = i <= kFirst ? static_cast<uint32_t>(i) : kDead;
    if (i >= kFirst) store.SetTag(nodes_[i], 0);
  }
  for (const State state : path) rests_[state] = state;
  size_t kept = kFirst;
  for (size_t i = kFirst; i < num_states_; ++i) {
    if (rests_[i] == kDead) continue;
    nodes_[kept] = nodes_[i];
    masks_[kept] = masks_[i];
    std::copy_n(rows_.data() + i * stride_, stride_, rows_.data() + kept * stride_);
    rests_[i] = static_cast<uint32_t>(kept++);
  }
  num_states_ = kept;
  for (State& next : rows_.subspan(kFirst * stride_, (kept - kFirst) * stride_)) {
    if (next != kDead) next = rests_[next] == kDead ? kUnknown : static_cast<State>(rests_[next]);
  }
  for (State& state : path) state = static_cast<State>(rests_[state]);
  expressions_->Collect(nodes_.subspan(kFirst, kept - kFirst));
  for (size_t i = kFirst; i < kept; ++i) {
    store.SetTag(nodes_[i], static_cast<uint16_t>(i));
    rests_[i] = expressions_->Rest(nodes_[i]);
  }
  rests_[kDead] = Expressions::kNever;
  rests_[kUnknown] = Expressions::kNever;
}

}  // namespace cria::grammar
