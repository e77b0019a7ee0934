#include "mpi/start_watch.h"

#include <unistd.h>

#include <format>

namespace cria::mpi {

StartWatch::StartWatch(std::chrono::seconds limit, const OnFault& on_fault)
    : limit_(limit), on_fault_(on_fault), thread_([this] { Run(); }) {}

StartWatch::~StartWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StartWatch::Run() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, limit_, [this] { return is_over_; })) return;
  on_fault_(
      std::format("not all ranks have started within {} s: one of them hangs, or its board "
                  "cannot be reached",
                  limit_.count()));
  // MPI is not ready to end the others; mpirun does that when a process ends like this.
  _exit(1);
}

}  // namespace cria::mpi
