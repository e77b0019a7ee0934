#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>

#include "core/thread_pool.h"
#include "decode/for_each_row.h"
#include "decode/profile.h"

namespace cria {

// The threads that compute the rows of a batch, and the profile that their time is counted in.
class Workers {
 public:
  // `pool` computes up to `num_few_rows` rows, which is bound by memory, and `batch_pool` computes
  // more rows, which is bound by computation; they may be the same pool. If decoders in several
  // threads share them, `pool_mutex` is locked while they are used. All must outlive the object.
  Workers(const ThreadPool& pool, const ThreadPool& batch_pool, size_t num_few_rows,
          std::mutex* pool_mutex)
      : pool_(pool),
        batch_pool_(batch_pool),
        num_few_rows_(num_few_rows),
        pool_mutex_(pool_mutex) {}

  size_t max_threads() const { return std::max(pool_.num_threads(), batch_pool_.num_threads()); }
  const ThreadPool& PoolFor(size_t rows) const {
    return rows <= num_few_rows_ ? pool_ : batch_pool_;
  }
  std::unique_lock<std::mutex> Lock() const {
    return pool_mutex_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*pool_mutex_);
  }
  // Calls `task(row)` for every row; each call processes `elements` numbers.
  template <typename Task>
  void ForEachRow(size_t rows, size_t elements, const Task& task) const {
    cria::ForEachRow(PoolFor(rows), rows, elements, task);
  }

  // From now on, time is counted in `profile`; null stops counting.
  void set_profile(Profile* profile) { profile_ = profile; }
  // The time since the last Count belongs to no operator.
  void Resume() const {
    if (profile_ != nullptr) profile_->Resume();
  }
  void Count(OperatorKind kind) const {
    if (profile_ != nullptr) profile_->Count(kind);
  }

 private:
  const ThreadPool& pool_;
  const ThreadPool& batch_pool_;
  const size_t num_few_rows_;
  std::mutex* const pool_mutex_;
  Profile* profile_ = nullptr;
};

}  // namespace cria
