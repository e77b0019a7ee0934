#include "llm/logit_rows.h"

#include "llm/scheduler.h"

namespace cria {

LogitRows& LogitRows::operator=(LogitRows&& other) noexcept {
  if (this == &other) return *this;
  Release();
  scheduler_ = std::exchange(other.scheduler_, nullptr);
  seat_ = other.seat_;
  rows_ = std::exchange(other.rows_, {});
  forward_ = other.forward_;
  return *this;
}

void LogitRows::Release() {
  rows_ = {};
  if (scheduler_ != nullptr) std::exchange(scheduler_, nullptr)->DoneWithLogits(*seat_, forward_);
}

}  // namespace cria
