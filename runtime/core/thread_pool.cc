#include "core/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "core/denormals.h"
#include "core/exclusion.h"
#include "core/format.h"
#include "core/worker_gate.h"

namespace cria {
namespace {

using Clock = WorkerGate::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A worker that is later than this, plus the time of two tasks, sits out for a while. In a virtual
// machine, waking a worker takes up to a few hundred microseconds, which is no reason to exclude
// it; another process on its processor delays it for a millisecond or more.
constexpr auto kMaxLateness = microseconds(500);
// A worker that was woken on the caller's processor is not woken again for this time.
constexpr auto kRefusedTime = microseconds(100);
// The caller spins for this time, in addition to the time of two tasks, before it sleeps until a
// worker finishes.
constexpr auto kCallerSpin = microseconds(50);
constexpr auto kWorkerForgottenAfter = milliseconds(8);

// The caller itself may lack a processor, because a quota stops all threads of the process, or
// because spinning workers keep the system from moving the caller to their processors. In each
// period of kWatchedTime, the caller must have had kMinProcessorShare of a processor.
constexpr auto kWatchedTime = milliseconds(20);
constexpr double kMinProcessorShare = 0.8;
constexpr auto kStarvingForgottenAfter = milliseconds(250);
// After a longer time without work, a new period begins.
constexpr auto kMaxWatchedGap = milliseconds(2);

}  // namespace

// The caller, which is thread 0, and the workers, which are threads 1 and on.
class ThreadPool::Crew {
 public:
  explicit Crew(size_t num_workers) : workers_(num_workers) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  ~Crew();

  // False if the system refuses a thread.
  bool Start();
  void Run(size_t count, void (*task)(void*, size_t, size_t), void* context);
  void LimitThreads(size_t max_threads) {
    max_threads_.store(max_threads, std::memory_order_relaxed);
  }

 private:
  struct Job {
    void (*task)(void*, size_t, size_t) = nullptr;
    void* context = nullptr;
  };
  // All that a worker needs to begin is in one cache line, because each line that another thread
  // has written must be fetched from its core.
  struct alignas(64) Worker {
    WorkerGate gate;
    IndexRange range;
    Job job;
    // The caller alone uses the rest.
    alignas(64) bool takes_part = false;
    Clock::time_point called_at;  // When it was called, if it has not joined since.
    Exclusion exclusion{kWorkerForgottenAfter};
  };
  struct ThreadStart {
    Crew* crew;
    size_t thread;
  };

  static void* RunWorker(void* start);
  // Chooses the threads that take part in a loop, and returns their number with the caller.
  size_t Summon(size_t count, Clock::time_point now);
  void Share(size_t count, size_t num_threads);
  // Returns how many tasks it ran.
  size_t RunTasks(const Job& job, size_t thread);
  void RunTask(const Job& job, size_t index, size_t thread);
  // Waits until no worker runs a task, and excludes workers that were late. `task_time` is the mean
  // time of a task.
  void Dismiss(Clock::time_point begin, Clock::time_point end, Clock::duration task_time);
  void BeginWatching(Clock::time_point now);
  void WatchCaller(Clock::time_point now);

  IndexRange& range(size_t thread) { return thread == 0 ? own_range_ : workers_[thread - 1].range; }

  std::atomic<bool> has_thrown_ = false;
  std::exception_ptr thrown_;
  // Workers read it in every loop, and it changes seldom.
  std::atomic<int> caller_processor_ = -1;
  std::atomic<size_t> max_threads_ = SIZE_MAX;

  std::vector<Worker> workers_;
  std::vector<ThreadStart> starts_;
  std::vector<pthread_t> threads_;

  alignas(64) IndexRange own_range_;

  // The caller's share of its processor, while workers take part.
  alignas(64) bool is_watching_ = false;
  pthread_t watched_ = {};  // Callers may be different threads.
  Clock::time_point watched_since_;
  Clock::time_point last_end_;
  Clock::duration slept_{0};  // Time in which the caller waited for workers, since then.
  platform::ThreadUsage usage_;
  Exclusion starving_{kStarvingForgottenAfter};
};

bool ThreadPool::Crew::Start() {
  starts_.reserve(workers_.size());
  threads_.reserve(workers_.size());
  for (size_t i = 0; i < workers_.size(); ++i) {
    starts_.push_back({this, i + 1});
    pthread_t thread = {};
    if (pthread_create(&thread, nullptr, RunWorker, &starts_.back()) != 0) return false;
    threads_.push_back(thread);
  }
  return true;
}

ThreadPool::Crew::~Crew() {
  for (size_t i = 0; i < threads_.size(); ++i) workers_[i].gate.Quit();
  for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
}

void* ThreadPool::Crew::RunWorker(void* start) {
  const auto [crew, thread] = *static_cast<const ThreadStart*>(start);
  const DenormalsDisabled denormals_disabled;
  Worker& worker = crew->workers_[thread - 1];
  while (worker.gate.WaitUntilOpen(crew->caller_processor_)) {
    if (!worker.gate.Join()) continue;
    crew->RunTasks(worker.job, thread);
    worker.gate.Finish();
  }
  return nullptr;
}

void ThreadPool::Crew::Run(size_t count, void (*task)(void*, size_t, size_t), void* context) {
  const DenormalsDisabled denormals_disabled;
  const Job job = {task, context};
  if (workers_.empty() || count <= 1) {
    for (size_t index = 0; index < count; ++index) RunTask(job, index, 0);
  } else {
    const Clock::time_point begin = Clock::now();
    Share(count, Summon(count, begin));
    for (Worker& worker : workers_) {
      if (!worker.takes_part) continue;
      worker.job = job;
      // A worker that has not joined since an earlier call is late since then.
      if (worker.gate.Open() != WorkerGate::Worker::kWaiting ||
          worker.called_at == Clock::time_point()) {
        worker.called_at = begin;
      }
    }
    const size_t num_run = RunTasks(job, 0);
    const Clock::time_point end = Clock::now();
    Dismiss(begin, end, (end - begin) / std::max<size_t>(1, num_run));
  }
  if (has_thrown_.load(std::memory_order_relaxed)) {
    has_thrown_.store(false, std::memory_order_relaxed);
    std::rethrow_exception(std::exchange(thrown_, nullptr));
  }
}

size_t ThreadPool::Crew::Summon(size_t count, Clock::time_point now) {
  const bool is_starving = starving_.Covers(now);
  if (is_starving) {
    is_watching_ = false;
  } else if (!is_watching_ || now - last_end_ > kMaxWatchedGap ||
             pthread_equal(watched_, pthread_self()) == 0) {
    BeginWatching(now);
  }
  const int processor = platform::CurrentProcessor();
  if (caller_processor_.load(std::memory_order_relaxed) != processor) {
    caller_processor_.store(processor, std::memory_order_relaxed);
  }
  const size_t max_threads = std::min(count, max_threads_.load(std::memory_order_relaxed));
  size_t num_threads = 1;
  for (Worker& worker : workers_) {
    worker.takes_part = !is_starving && num_threads < max_threads && !worker.exclusion.Covers(now);
    if (worker.takes_part) ++num_threads;
  }
  return num_threads;
}

void ThreadPool::Crew::Share(size_t count, size_t num_threads) {
  size_t begin = 0;
  size_t num_shared = 0;
  const auto share = [&](IndexRange& range) {
    const size_t end = static_cast<size_t>(uint64_t{count} * ++num_shared / num_threads);
    range.Set(begin, end);
    begin = end;
  };
  share(own_range_);
  for (Worker& worker : workers_) {
    if (worker.takes_part) share(worker.range);
  }
}

size_t ThreadPool::Crew::RunTasks(const Job& job, size_t thread) {
  size_t num_run = 0;
  size_t index = 0;
  while (range(thread).TakeFirst(index)) {
    RunTask(job, index, thread);
    ++num_run;
  }
  const size_t num_threads = workers_.size() + 1;
  for (size_t step = 1; step < num_threads; ++step) {
    IndexRange& other = range((thread + step) % num_threads);
    while (other.TakeLast(index)) {
      RunTask(job, index, thread);
      ++num_run;
    }
  }
  return num_run;
}

void ThreadPool::Crew::RunTask(const Job& job, size_t index, size_t thread) {
  try {
    job.task(job.context, index, thread);
  } catch (const std::exception&) {
    // An exception that leaves the first function of a thread would end the process.
    if (!has_thrown_.exchange(true)) thrown_ = std::current_exception();
  }
}

void ThreadPool::Crew::Dismiss(Clock::time_point begin, Clock::time_point end,
                               Clock::duration task_time) {
  const Clock::duration max_lateness = kMaxLateness + 2 * task_time;
  Clock::time_point now = end;
  for (Worker& worker : workers_) {
    if (!worker.takes_part) continue;
    switch (worker.gate.Close()) {
      case WorkerGate::Worker::kRefused:
        worker.called_at = {};
        worker.exclusion.Extend(now, kRefusedTime);
        break;
      case WorkerGate::Worker::kJoined:
        worker.called_at = {};
        now = worker.gate.AwaitFinish(now, kCallerSpin + 2 * task_time, slept_);
        if (now - end > max_lateness) {
          worker.exclusion.Extend(now, now - end);
        } else {
          worker.exclusion.AddService(end - begin);
        }
        break;
      default:
        if (now - worker.called_at > max_lateness) {
          worker.exclusion.Extend(now, now - worker.called_at);
          worker.called_at = {};
        }
    }
  }
  last_end_ = now;
  if (is_watching_ && now - watched_since_ >= kWatchedTime) WatchCaller(now);
}

void ThreadPool::Crew::BeginWatching(Clock::time_point now) {
  is_watching_ = true;
  watched_ = pthread_self();
  watched_since_ = now;
  slept_ = Clock::duration::zero();
  usage_ = platform::ReadThreadUsage();
}

void ThreadPool::Crew::WatchCaller(Clock::time_point now) {
  const platform::ThreadUsage before = usage_;
  const Clock::duration wanted = now - watched_since_ - slept_;
  BeginWatching(now);
  const Clock::duration given = usage_.processor_time - before.processor_time;
  // A caller that waits for a disk uses little processor time, too, but is not preempted.
  const bool was_preempted = usage_.preemptions != before.preemptions;
  if (was_preempted && given < kMinProcessorShare * wanted) {
    starving_.Extend(now, wanted - given);
  } else {
    starving_.AddService(wanted);
  }
}

Result<ThreadPool> ThreadPool::Create(size_t num_threads, size_t max_running) {
  constexpr size_t kMaxThreads = 1024;
  if (num_threads == 0 || num_threads > kMaxThreads) {
    return Fail(ErrorCode::kUsage,
                Format("{} threads are outside 1 to {}", num_threads, kMaxThreads),
                RemedyKind::kChooseThreads);
  }
  auto crew = std::make_unique<Crew>(std::clamp<size_t>(max_running, 1, num_threads) - 1);
  if (!crew->Start()) {
    return Fail(ErrorCode::kOutOfMemory, Format("cannot start {} threads", num_threads),
                RemedyKind::kFewerThreads);
  }
  return ThreadPool(std::move(crew), num_threads);
}

ThreadPool::ThreadPool(std::unique_ptr<Crew> crew, size_t num_threads)
    : crew_(std::move(crew)), num_threads_(num_threads) {}
ThreadPool::ThreadPool(ThreadPool&&) noexcept = default;
ThreadPool& ThreadPool::operator=(ThreadPool&&) noexcept = default;
ThreadPool::~ThreadPool() = default;

void ThreadPool::LimitThreads(size_t max_threads) const { crew_->LimitThreads(max_threads); }

void ThreadPool::Run(size_t count, void (*task)(void*, size_t, size_t), void* context) const {
  crew_->Run(count, task, context);
}

}  // namespace cria
