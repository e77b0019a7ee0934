#include "mpi/watch.h"

#include <mpi.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "core/format.h"

namespace cria::mpi {
namespace {

constexpr int kBeatTag = 2;
constexpr auto kPeriod = std::chrono::milliseconds(250);
constexpr auto kBeatPeriod = std::chrono::seconds(1);
// If this thread itself did not run for so long, the whole board was asleep or stopped, and it
// cannot tell how the others fared.
constexpr auto kOwnPause = std::chrono::seconds(3);
// The others hear later than rank 0 that a rank gets on, so that rank 0 is first to name one.
constexpr auto kRank0IsFirst = std::chrono::seconds(2);

}  // namespace

struct MpiTransport::Watch::Sign {
  RankProgress progress;
  bool is_last = false;
};

struct MpiTransport::Watch::Other {
  size_t rank = 0;
  Clock::time_point last_seen;
  bool has_left = false;
  Sign sent;
  MPI_Request request = MPI_REQUEST_NULL;
};

MpiTransport::Watch::Watch(MpiTransport& transport)
    : transport_(transport),
      late_rank_(
          transport.num_ranks(),
          transport.limits_.stall + (transport.rank() == 0 ? Clock::duration() : kRank0IsFirst),
          Clock::now()) {
  for (size_t rank = 0; rank < transport_.num_ranks(); ++rank) {
    const bool is_watched = rank != transport_.rank() && (rank == 0 || transport_.rank() == 0);
    if (!is_watched) continue;
    others_.push_back(std::make_unique<Other>());
    others_.back()->rank = rank;
    others_.back()->last_seen = Clock::now();
  }
  thread_ = std::thread([this] { Run(); });
}

MpiTransport::Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  TakeLeave();
}

void MpiTransport::Watch::Run() {
  Clock::time_point last_round = Clock::now();
  Clock::time_point next_beat = last_round;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kPeriod, [this] { return is_over_; })) {
    const Clock::time_point now = Clock::now();
    wants_mpi_.store(true, std::memory_order_relaxed);
    {
      const std::lock_guard mpi_lock(transport_.mutex_);
      if (now >= next_beat) {
        Beat();
        next_beat = now + kBeatPeriod;
      }
      Receive();
    }
    wants_mpi_.store(false, std::memory_order_relaxed);
    if (now - last_round > kOwnPause) {
      for (const std::unique_ptr<Other>& other : others_) other->last_seen = Clock::now();
      late_rank_.Restart(Clock::now());
    }
    last_round = now;
    CheckAll(Clock::now());
  }
}

void MpiTransport::Watch::Beat() {
  for (const std::unique_ptr<Other>& other : others_) {
    int is_done = 1;
    if (other->request != MPI_REQUEST_NULL) {
      MPI_Test(&other->request, &is_done, MPI_STATUS_IGNORE);
    }
    // If the last one did not leave yet, another one does not help.
    if (is_done == 0) continue;
    Send(*other, false);
  }
}

void MpiTransport::Watch::Send(Other& other, bool is_last) {
  static_assert(std::is_trivially_copyable_v<Sign>);
  other.sent = {.progress = transport_.progress(), .is_last = is_last};
  if (transport_.rank() == 0) other.sent.progress.num_seen = late_rank_.num_changes();
  MPI_Isend(&other.sent, sizeof other.sent, MPI_BYTE, static_cast<int>(other.rank), kBeatTag,
            MPI_COMM_WORLD, &other.request);
}

void MpiTransport::Watch::ReceiveSign(Other& other) {
  Sign received;
  const int result = MPI_Recv(&received, sizeof received, MPI_BYTE, static_cast<int>(other.rank),
                              kBeatTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  other.has_left = result != MPI_SUCCESS || received.is_last;
  other.last_seen = Clock::now();
  late_rank_.Update(other.rank, received.progress, other.last_seen);
}

// MPICH fails to end while messages are left that nobody has received.
void MpiTransport::Watch::TakeLeave() {
  for (const std::unique_ptr<Other>& other : others_) {
    MPI_Wait(&other->request, MPI_STATUS_IGNORE);
    Send(*other, true);
  }
  for (const std::unique_ptr<Other>& other : others_) {
    while (!other->has_left) ReceiveSign(*other);
    MPI_Wait(&other->request, MPI_STATUS_IGNORE);
  }
}

void MpiTransport::Watch::Receive() {
  for (const std::unique_ptr<Other>& other : others_) {
    while (true) {
      int has_come = 0;
      const int rank = static_cast<int>(other->rank);
      if (MPI_Iprobe(rank, kBeatTag, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE) != MPI_SUCCESS ||
          has_come == 0) {
        break;
      }
      ReceiveSign(*other);
    }
  }
}

void MpiTransport::Watch::CheckAll(Clock::time_point now) {
  const MpiLimits& limits = transport_.limits_;
  for (const std::unique_ptr<Other>& other : others_) {
    if (now - other->last_seen <= limits.silence) continue;
    EndBecauseOf(other->rank, Format("has given no sign of life for {} s", limits.silence.count()));
  }
  late_rank_.Update(transport_.rank(), transport_.progress(), now);
  if (const std::optional<size_t> late = late_rank_.Find(now)) {
    EndBecauseOf(*late, Format("hangs: the others have waited for it for more than {} s",
                               limits.stall.count()));
  }
}

void MpiTransport::Watch::EndBecauseOf(size_t rank, std::string_view what) {
  transport_.TellAndEndAll(
      Format("rank {} ({}) {}: all ranks end", rank, transport_.host(rank), what));
}

}  // namespace cria::mpi
