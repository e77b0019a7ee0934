#include "server/work/work_queue.h"

#include <algorithm>
#include <utility>

namespace cria::server {
namespace {

bool IsAbandoned(const WorkQueue::Job& job) {
  return job.gone != nullptr && job.gone->load(std::memory_order_relaxed);
}

}  // namespace

WorkQueue::WorkQueue(size_t num_threads, size_t max_waiting)
    : num_threads_(std::max<size_t>(num_threads, 1)), max_waiting_(max_waiting) {
  threads_.reserve(num_threads_);
  for (size_t i = 0; i < num_threads_; ++i) threads_.emplace_back([this] { Work(); });
}

WorkQueue::~WorkQueue() { Close(std::chrono::milliseconds(0)); }

bool WorkQueue::Submit(Job job) {
  std::deque<Job> dropped;
  const Lock lock(mutex_);
  const auto is_full = [this] {
    return jobs_.size() + num_running_ >= num_threads_ + max_waiting_;
  };
  // Their memory is needed for others.
  DropAbandoned(dropped);
  if (is_closed_ || is_full()) {
    ++totals_.refused;
    return false;
  }
  ++totals_.accepted;
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return true;
}

void WorkQueue::DropAbandoned(std::deque<Job>& dropped) {
  std::deque<Job> kept;
  for (Job& job : jobs_) (IsAbandoned(job) ? dropped : kept).push_back(std::move(job));
  jobs_ = std::move(kept);
  totals_.abandoned += dropped.size();
}

void WorkQueue::Work() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !jobs_.empty() || !shared_.empty(); });
    if (jobs_.empty() && !shared_.empty()) {
      Help(lock);
      continue;
    }
    if (jobs_.empty()) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    if (IsAbandoned(job)) {
      ++totals_.abandoned;
      lock.unlock();
      job = {};
      lock.lock();
      continue;
    }
    ++num_running_;
    lock.unlock();
    job.run();
    // What it holds is freed before it counts as ended.
    job = {};
    lock.lock();
    --num_running_;
    changed_.notify_all();
  }
}

void WorkQueue::Share(const std::function<bool()>& step) {
  SharedWork shared = {step};
  Lock lock(mutex_);
  shared_.push_back(&shared);
  changed_.notify_all();
  lock.unlock();
  while (step()) continue;
  lock.lock();
  std::erase(shared_, &shared);
  changed_.wait(lock, [&] { return shared.num_helpers == 0; });
}

void WorkQueue::Help(Lock& lock) {
  SharedWork& shared = *shared_.front();
  ++shared.num_helpers;
  lock.unlock();
  const bool is_more_left = shared.step();
  lock.lock();
  if (!is_more_left) std::erase(shared_, &shared);
  --shared.num_helpers;
  changed_.notify_all();
}

void WorkQueue::RefuseWaiting(Lock& lock) {
  std::deque<Job> waiting = std::exchange(jobs_, {});
  totals_.refused += waiting.size();
  lock.unlock();
  for (const Job& job : waiting) {
    if (job.refuse) job.refuse();
  }
  waiting.clear();
  lock.lock();
}

void WorkQueue::Close(std::chrono::milliseconds grace) {
  const std::lock_guard closing(close_mutex_);
  {
    Lock lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
    RefuseWaiting(lock);
    if (!changed_.wait_for(lock, grace, [this] { return num_running_ == 0; })) ends_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

WorkQueue::Figures WorkQueue::figures() const {
  const Lock lock(mutex_);
  Figures figures = totals_;
  figures.running = num_running_;
  figures.waiting = jobs_.size();
  return figures;
}

}  // namespace cria::server
