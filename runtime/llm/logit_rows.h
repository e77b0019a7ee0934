#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace cria {

class Scheduler;
class Seat;

// Logits that a scheduler has computed for a seat: those behind its tokens, and those behind each
// draft. No other session goes on until the object is destroyed or the seat is used again, because
// the next Forward of the model overwrites the rows. It must not outlive the seat.
class LogitRows {
 public:
  LogitRows() = default;
  LogitRows(LogitRows&& other) noexcept { *this = std::move(other); }
  LogitRows& operator=(LogitRows&& other) noexcept;
  ~LogitRows() { Release(); }

  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }
  // [vocab_size]
  std::span<float> operator[](size_t row) const { return rows_[row]; }
  std::span<float> front() const { return rows_.front(); }

  // Lets other sessions go on. There are no rows then.
  void Release();

 private:
  friend class Scheduler;

  LogitRows(Scheduler& scheduler, Seat& seat, std::span<const std::span<float>> rows,
            uint64_t forward)
      : scheduler_(&scheduler), seat_(&seat), rows_(rows), forward_(forward) {}

  Scheduler* scheduler_ = nullptr;  // Null: there are no rows.
  Seat* seat_ = nullptr;
  std::span<const std::span<float>> rows_;
  uint64_t forward_ = 0;  // Which Forward has computed them.
};

}  // namespace cria
