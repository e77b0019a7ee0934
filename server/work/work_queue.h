#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cria::server {

// Runs jobs on a number of threads, one for each sequence of the engine. Others wait in a bounded
// queue, in their order.
class WorkQueue {
 public:
  struct Job {
    std::function<void()> run;
    // Called instead of `run` if the queue is closed before the job's turn; must return soon.
    std::function<void()> refuse;
    // If it becomes true before the job's turn, the job is dropped: its client has gone away. It
    // may be null, and must be valid as long as the functions.
    const std::atomic<bool>* gone = nullptr;
  };

  struct Figures {
    size_t running = 0;
    size_t waiting = 0;
    uint64_t accepted = 0;   // So many jobs were since the beginning.
    uint64_t refused = 0;    // Because the queue was full or closed.
    uint64_t abandoned = 0;  // Dropped before their turn, because their clients had gone away.
  };

  // At most `max_waiting` jobs wait while all threads are busy.
  WorkQueue(size_t num_threads, size_t max_waiting);
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;
  // Closes without grace.
  ~WorkQueue();

  // False if the queue is full or closed; then the job has not been called.
  bool Submit(Job job);
  // Calls `step` until it returns false: on this thread, which must be one of a job, and on those
  // that have no job meanwhile. Several threads may call it at once; it must not throw. Returns
  // when all of its calls have ended.
  void Share(const std::function<bool()>& step);
  // No new jobs from now on, and those that wait are refused. Returns when the running ones have
  // ended; after `grace`, ends() tells them to. Later calls return when the first one does.
  void Close(std::chrono::milliseconds grace);
  // Jobs should look at this as often as they look at `gone`.
  const std::atomic<bool>& ends() const { return ends_; }

  size_t num_threads() const { return num_threads_; }
  size_t max_waiting() const { return max_waiting_; }
  Figures figures() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Work that a job shares, in the stack of its thread.
  struct SharedWork {
    const std::function<bool()>& step;
    size_t num_helpers = 0;  // Other threads that are in a step.
  };

  void Work();
  // Does one step of what is shared, with the mutex released meanwhile.
  void Help(Lock& lock);
  // Moves the jobs whose clients have gone away into `dropped`: destroying one may take time.
  void DropAbandoned(std::deque<Job>& dropped);
  void RefuseWaiting(Lock& lock);

  const size_t num_threads_;
  const size_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::vector<SharedWork*> shared_;  // More of their steps may be left.
  size_t num_running_ = 0;
  Figures totals_;
  bool is_closed_ = false;
  std::atomic<bool> ends_ = false;
  std::mutex close_mutex_;  // Held by Close.
  std::vector<std::thread> threads_;
};

}  // namespace cria::server
