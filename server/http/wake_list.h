#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "server/http/listener.h"

namespace cria::server {

class PendingAnswer;

// Through it, other threads wake the HTTP thread, which waits for its descriptor. It outlives the
// server as long as an answer needs it.
class WakeList {
 public:
  // `max_answers` may be in the list at once without allocating.
  explicit WakeList(size_t max_answers);

  int descriptor() const { return event_.value(); }
  // The answer has something for its connection. An answer is in the list at most once.
  void Wake(std::shared_ptr<PendingAnswer> answer);
  // Only wakes the thread.
  void Wake();
  // Moves the list to `answers`, which is cleared first.
  void Take(std::vector<std::shared_ptr<PendingAnswer>>& answers);

 private:
  Descriptor event_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<PendingAnswer>> answers_;
};

}  // namespace cria::server
