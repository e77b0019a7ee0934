#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/late_rank.h"
#include "ranks/transport.h"

namespace cria::mpi {

struct MpiLimits {
  // How long the ranks may take to find each other.
  std::chrono::seconds start = std::chrono::seconds(60);
  // A rank that gives no sign of life for so long counts as dead.
  std::chrono::seconds silence = std::chrono::seconds(10);
  // A rank that lives, but for which others wait so long in one step of the model, counts as
  // hanging. A slow board may need many seconds for a step of a long prompt. Loading may take
  // LateRank::kLoadingFactor times as long between two matrices.
  std::chrono::seconds stall = std::chrono::seconds(120);
};

// Told with a sentence why all ranks end, before they do.
using OnFault = std::function<void(std::string_view sentence)>;

// The processes that mpirun started, which exchange messages by MPI. There may be one object in the
// life of a process.
//
// Every rank gives rank 0 a sign of life each second, and rank 0 gives one to all, from a thread of
// its own, so also while a rank computes or waits for a user. It says how far the rank has come. If
// a sign is missing, or a rank for which others wait does not get on, the ranks that notice it end
// the whole run. So Exchange itself may wait as long as another rank computes.
class MpiTransport final : public ranks::Transport {
 public:
  // Waits for the other ranks.
  static Result<std::unique_ptr<MpiTransport>> Start(const MpiLimits& limits, OnFault on_fault);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  // Waits until the other ranks end, too, but no longer than limits.silence.
  ~MpiTransport() override;

  size_t rank() const override { return rank_; }
  size_t num_ranks() const override { return hosts_.size(); }
  // The name of the board on which a rank runs.
  const std::string& host(size_t rank) const { return hosts_[rank]; }

  void Enter(RankPhase phase) override;
  Status Exchange(std::span<const ranks::Outgoing> sent,
                  std::span<const ranks::Incoming> received) override;
  // Whether an exchange has failed, or is under way.
  bool is_broken() const { return is_broken_; }

  // Tells this sentence, and ends the processes of all ranks. If an exchange has failed, another
  // rank may be the cause, so that the watch gets the time to find that out and to end all first.
  [[noreturn]] void EndAllBecause(std::string_view sentence);

 private:
  class Watch;
  struct Requests;

  MpiTransport(const MpiLimits& limits, OnFault on_fault);
  Status LearnHosts();
  Status Post(std::span<const ranks::Outgoing> sent, std::span<const ranks::Incoming> received);
  Status AwaitRequests();
  [[noreturn]] void TellAndEndAll(std::string_view sentence);
  RankProgress progress() const;

  const MpiLimits limits_;
  const OnFault on_fault_;
  // Locked during each call of MPI; none of them waits.
  std::timed_mutex mutex_;
  size_t rank_ = 0;
  std::vector<std::string> hosts_;
  std::unique_ptr<Requests> requests_;
  bool is_broken_ = false;
  // What the watch tells others of the thread that calls Exchange.
  std::atomic<uint64_t> num_exchanges_ = 0;
  std::atomic<uint32_t> num_phases_ = 0;
  std::atomic<RankPhase> phase_ = RankPhase::kComputing;
  std::atomic<bool> waits_ = false;
  std::unique_ptr<Watch> watch_;
};

}  // namespace cria::mpi
