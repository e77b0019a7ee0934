#include "server/work/session_pool.h"

#include <algorithm>
#include <utility>

namespace cria::server {
namespace {

size_t CommonTokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

SessionPool::Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}

SessionPool::Lease::~Lease() {
  if (pool_ != nullptr) pool_->Return(index_);
}

Constraint* SessionPool::Lease::constraint() const {
  Slot& slot = pool_->slots_[index_];
  if (slot.constraint == nullptr) {
    Result<std::unique_ptr<Constraint>> made = pool_->engine_.NewConstraint();
    if (made) slot.constraint = std::move(*made);
  }
  return slot.constraint.get();
}

SessionPool::SessionPool(Engine& engine)
    : engine_(engine), slots_(engine.decoder().max_sequences()) {
  for (Slot& slot : slots_) slot.session = engine.NewSession();
}

SessionPool::Lease SessionPool::Take(std::span<const int32_t> tokens) {
  std::unique_lock lock(mutex_);
  size_t chosen = 0;
  changed_.wait(lock, [&] { return (chosen = Choose(tokens)) < slots_.size(); });
  return Use(chosen);
}

SessionPool::Lease SessionPool::TakeSlot(size_t index) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !slots_[index].is_busy; });
  return Use(index);
}

size_t SessionPool::Choose(std::span<const int32_t> tokens) const {
  size_t longest = slots_.size();
  size_t longest_common = 0;
  size_t oldest = slots_.size();
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].is_busy) continue;
    const auto held = slots_[i].session->tokens();
    const size_t common = CommonTokens(held, tokens);
    // Less than half would throw away most of another text, whose beginning can be shared as well.
    if (common > longest_common && 2 * common >= held.size()) {
      longest = i;
      longest_common = common;
    }
    if (oldest == slots_.size() || slots_[i].last_use < slots_[oldest].last_use) oldest = i;
  }
  return longest < slots_.size() ? longest : oldest;
}

SessionPool::Lease SessionPool::Use(size_t index) {
  Slot& slot = slots_[index];
  slot.is_busy = true;
  slot.last_use = ++num_uses_;
  ++slot.num_uses;
  return {*this, index};
}

void SessionPool::Return(size_t index) {
  const std::lock_guard lock(mutex_);
  Slot& slot = slots_[index];
  slot.is_busy = false;
  slot.num_tokens = slot.session->tokens().size();
  slot.session->ResetStats();
  changed_.notify_all();
}

std::vector<SessionPool::SlotFigures> SessionPool::figures() const {
  const std::lock_guard lock(mutex_);
  std::vector<SlotFigures> figures;
  figures.reserve(slots_.size());
  for (const Slot& slot : slots_) figures.push_back({slot.is_busy, slot.num_tokens, slot.num_uses});
  return figures;
}

}  // namespace cria::server
