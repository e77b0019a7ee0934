#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "llm/constraint.h"
#include "llm/engine.h"
#include "llm/session.h"

namespace cria::server {

// The sessions in which a server answers, one for each sequence of the engine. A text goes on in
// the session that already has most of it; otherwise it takes the one that was used least recently,
// and the engine finds what any other session has of its beginning (SequenceSlots).
class SessionPool {
 public:
  // The use of one session, until it is destroyed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    size_t index() const { return index_; }
    Session& session() const { return *pool_->slots_[index_].session; }
    // The session's constraint, which is made when it is first asked for; null if the engine has
    // none.
    Constraint* constraint() const;

   private:
    friend class SessionPool;
    Lease(SessionPool& pool, size_t index) : pool_(&pool), index_(index) {}

    SessionPool* pool_;  // Null: moved from.
    size_t index_;
  };

  struct SlotFigures {
    bool is_busy = false;
    size_t num_tokens = 0;  // How many its context had when it was used last.
    uint64_t num_uses = 0;
  };

  explicit SessionPool(Engine& engine);
  SessionPool(const SessionPool&) = delete;
  SessionPool& operator=(const SessionPool&) = delete;

  // A session for a text that begins with `tokens`. Waits if all are in use.
  Lease Take(std::span<const int32_t> tokens);
  // This one; waits until it is free. `index` must be below size().
  Lease TakeSlot(size_t index);

  size_t size() const { return slots_.size(); }
  std::vector<SlotFigures> figures() const;

 private:
  struct Slot {
    std::unique_ptr<Session> session;
    std::unique_ptr<Constraint> constraint;
    bool is_busy = false;
    size_t num_tokens = 0;  // How many the session has, while it is not busy.
    uint64_t last_use = 0;
    uint64_t num_uses = 0;
  };

  // The best free session, or size() if there is none.
  size_t Choose(std::span<const int32_t> tokens) const;
  Lease Use(size_t index);
  void Return(size_t index);

  Engine& engine_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  uint64_t num_uses_ = 0;
};

}  // namespace cria::server
