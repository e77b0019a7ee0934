#include "mpi/start_watch.h"

#include <unistd.h>

#include <future>
#include <string>
#include <vector>

#include "core/format.h"
#include "mpi/end_all.h"
#include "mpi/launcher.h"

namespace cria::mpi {
namespace {

constexpr auto kRollCallLimit = std::chrono::seconds(8);
// Ranks on other boards wait so long before they end. After the first one has ended, mpirun ends
// all others, and may then wait for a board that is gone. Only a rank on mpirun's own board can end
// mpirun, so that this one ends first.
constexpr auto kOtherBoardsWait = std::chrono::seconds(2);

}  // namespace

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

std::string StartWatch::Missing() {
  const std::vector<size_t> ranks = roll_call_.FindMissing();
  if (ranks.empty()) return "some ranks have";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text + (ranks.size() == 1 ? " has" : " have");
}

void StartWatch::Run() {
  {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit_, [this] { return is_over_; })) return;
  }
  std::future<std::string> answer = std::async(std::launch::async, [this] { return Missing(); });
  // If this board has lost its network, mpirun never answers, and would not hear of a fault either.
  const bool is_answered = answer.wait_for(kRollCallLimit) == std::future_status::ready;
  const std::string missing = is_answered ? answer.get() : "some ranks have";
  std::unique_lock lock(mutex_);
  if (MpirunOfThisBoard() == 0) {
    changed_.wait_for(lock, kOtherBoardsWait, [this] { return is_over_; });
  }
  // The last one may have come meanwhile.
  if (is_over_ && is_answered) return;
  on_fault_(Format("{} not started within {} s: a process hangs, or its board cannot be reached",
                   missing, limit_.count()));
  // MPI is not ready to end the others; mpirun does that when a process ends like this.
  EndLauncherSoon();
  _exit(1);
}

}  // namespace cria::mpi
