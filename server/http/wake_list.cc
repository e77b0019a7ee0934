#include "server/http/wake_list.h"

#include <sys/eventfd.h>

#include <utility>

#include "server/http/pending_answer.h"

namespace cria::server {

WakeList::WakeList(size_t max_answers) : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  answers_.reserve(max_answers);
}

void WakeList::Wake(std::shared_ptr<PendingAnswer> answer) {
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  Wake();
}

void WakeList::Wake() {
  // Fails only if the counter is full: then the thread wakes anyway.
  eventfd_write(event_.value(), 1);
}

void WakeList::Take(std::vector<std::shared_ptr<PendingAnswer>>& answers) {
  answers.clear();
  eventfd_t count = 0;
  eventfd_read(event_.value(), &count);
  const std::lock_guard lock(mutex_);
  std::swap(answers, answers_);
}

}  // namespace cria::server
