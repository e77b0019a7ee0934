#include "mpi/mpi_transport.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <thread>
#include <utility>

#include "core/format.h"
#include "mpi/end_all.h"
#include "mpi/start_watch.h"
#include "mpi/watch.h"

namespace cria::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDataTag = 1;
constexpr int kNameTag = 3;
// A wait begins with polling, because most messages come within microseconds while a model
// computes. Then it sleeps between polls: briefly while another rank may still compute, and longer
// and longer after that, because a user may think for hours.
constexpr auto kSpinTime = std::chrono::milliseconds(3);
constexpr auto kFirstSleep = std::chrono::microseconds(100);
constexpr auto kBriefTime = std::chrono::milliseconds(500);
constexpr auto kLongestSleep = std::chrono::milliseconds(5);
// In which mpirun passes on what a rank has written: that of MPICH loses the rest when it kills the
// ranks.
constexpr auto kTellingTime = std::chrono::milliseconds(200);

Status CheckMpi(int result, std::string_view what) {
  if (result == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int size = 0;
  MPI_Error_string(result, text.data(), &size);
  return Fail(ErrorCode::kIo, Format("{}: {}", what, text.data()));
}

constexpr size_t kNameBytes = MPI_MAX_PROCESSOR_NAME;

// Fills `names`, in which a rank has written its own, with those of all ranks. MPI_Allgather does
// the same, but there a rank may still wait for one that is gone when rank 0 already knows all
// names: rank 0 would hear neither of them and might blame the wrong one. Here they wait only for
// rank 0.
Status ExchangeNames(int rank, int num_ranks, std::span<char> names) {
  constexpr std::string_view kWhat = "the ranks do not find each other";
  const auto name_of = [&](int other) {
    return names.subspan(static_cast<size_t>(other) * kNameBytes, kNameBytes);
  };
  const auto send = [&](std::span<const char> text, int to) {
    return CheckMpi(MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, to, kNameTag,
                             MPI_COMM_WORLD),
                    kWhat);
  };
  const auto receive = [&](std::span<char> text, int from) {
    return CheckMpi(MPI_Recv(text.data(), static_cast<int>(text.size()), MPI_CHAR, from, kNameTag,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                    kWhat);
  };
  if (rank != 0) {
    CRIA_RETURN_IF_ERROR(send(name_of(rank), 0));
    return receive(names, 0);
  }
  for (int other = 1; other < num_ranks; ++other) {
    CRIA_RETURN_IF_ERROR(receive(name_of(other), other));
  }
  for (int other = 1; other < num_ranks; ++other) CRIA_RETURN_IF_ERROR(send(names, other));
  return {};
}

}  // namespace

// With capacity for a message from and to each rank.
struct MpiTransport::Requests {
  std::vector<MPI_Request> all;
};

MpiTransport::MpiTransport(const MpiLimits& limits, OnFault on_fault)
    : limits_(limits), on_fault_(std::move(on_fault)), requests_(std::make_unique<Requests>()) {}

Result<std::unique_ptr<MpiTransport>> MpiTransport::Start(const MpiLimits& limits,
                                                          OnFault on_fault) {
  std::unique_ptr<MpiTransport> transport(new MpiTransport(limits, std::move(on_fault)));
  // MPI itself would wait for a rank that is stopped for ever.
  const StartWatch watch(limits.start, transport->on_fault_);
  int provided = 0;
  CRIA_RETURN_IF_ERROR(
      CheckMpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI"));
  if (provided < MPI_THREAD_SERIALIZED) {
    return Fail(ErrorCode::kUnsupported,
                "this MPI does not let several threads call it, which signs of life need");
  }
  CRIA_RETURN_IF_ERROR(CheckMpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI"));
  CRIA_RETURN_IF_ERROR(transport->LearnHosts());
  transport->requests_->all.reserve(2 * transport->num_ranks());
  transport->watch_ = std::make_unique<Watch>(*transport);
  return transport;
}

Status MpiTransport::LearnHosts() {
  int rank = 0;
  int num_ranks = 0;
  CRIA_RETURN_IF_ERROR(CheckMpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI"));
  CRIA_RETURN_IF_ERROR(CheckMpi(MPI_Comm_size(MPI_COMM_WORLD, &num_ranks), "MPI"));
  rank_ = static_cast<size_t>(rank);
  std::vector<char> names(static_cast<size_t>(num_ranks) * kNameBytes);
  int size = 0;
  CRIA_RETURN_IF_ERROR(CheckMpi(MPI_Get_processor_name(&names[rank_ * kNameBytes], &size), "MPI"));
  CRIA_RETURN_IF_ERROR(ExchangeNames(rank, num_ranks, names));
  for (size_t i = 0; i < names.size(); i += kNameBytes) hosts_.emplace_back(&names[i]);
  return {};
}

MpiTransport::~MpiTransport() {
  int is_started = 0;
  MPI_Initialized(&is_started);
  if (is_started == 0) return;
  EndWithin(limits_.silence);
  watch_.reset();
  MPI_Finalize();
  EndWithin(std::chrono::seconds(0));
}

Status MpiTransport::Exchange(std::span<const ranks::Outgoing> sent,
                              std::span<const ranks::Incoming> received) {
  if (is_broken_) return Fail(ErrorCode::kIo, "the ranks do not agree any more");
  // Until all of it has succeeded.
  is_broken_ = true;
  num_exchanges_.fetch_add(1, std::memory_order_relaxed);
  waits_.store(true, std::memory_order_relaxed);
  CRIA_RETURN_IF_ERROR(Post(sent, received));
  CRIA_RETURN_IF_ERROR(AwaitRequests());
  waits_.store(false, std::memory_order_relaxed);
  is_broken_ = false;
  return {};
}

void MpiTransport::EndAllBecause(std::string_view sentence) {
  if (is_broken_) std::this_thread::sleep_for(limits_.silence + std::chrono::seconds(3));
  TellAndEndAll(sentence);
}

void MpiTransport::TellAndEndAll(std::string_view sentence) {
  on_fault_(sentence);
  std::this_thread::sleep_for(kTellingTime);
  // Another thread may be inside MPI for ever.
  static_cast<void>(mutex_.try_lock_for(std::chrono::milliseconds(500)));
  EndAll();
}

void MpiTransport::Enter(RankPhase phase) {
  phase_.store(phase, std::memory_order_relaxed);
  num_phases_.fetch_add(1, std::memory_order_relaxed);
}

// If the other thread goes on meanwhile, the parts do not fit each other, which one beat later
// corrects.
RankProgress MpiTransport::progress() const {
  return {.num_exchanges = num_exchanges_.load(std::memory_order_relaxed),
          .num_phases = num_phases_.load(std::memory_order_relaxed),
          .phase = phase_.load(std::memory_order_relaxed),
          .waits = waits_.load(std::memory_order_relaxed)};
}

Status MpiTransport::Post(std::span<const ranks::Outgoing> sent,
                          std::span<const ranks::Incoming> received) {
  std::vector<MPI_Request>& requests = requests_->all;
  requests.clear();
  const std::lock_guard lock(mutex_);
  for (const ranks::Incoming& message : received) {
    if (message.bytes.size() > INT_MAX) return Fail(ErrorCode::kInternal, "a message is too large");
    CRIA_RETURN_IF_ERROR(
        CheckMpi(MPI_Irecv(message.bytes.data(), static_cast<int>(message.bytes.size()), MPI_BYTE,
                           static_cast<int>(message.rank), kDataTag, MPI_COMM_WORLD,
                           &requests.emplace_back()),
                 "receiving from another rank"));
  }
  for (const ranks::Outgoing& message : sent) {
    if (message.bytes.size() > INT_MAX) return Fail(ErrorCode::kInternal, "a message is too large");
    CRIA_RETURN_IF_ERROR(
        CheckMpi(MPI_Isend(message.bytes.data(), static_cast<int>(message.bytes.size()), MPI_BYTE,
                           static_cast<int>(message.rank), kDataTag, MPI_COMM_WORLD,
                           &requests.emplace_back()),
                 "sending to another rank"));
  }
  return {};
}

Status MpiTransport::AwaitRequests() {
  std::vector<MPI_Request>& requests = requests_->all;
  const Clock::time_point begin = Clock::now();
  std::chrono::nanoseconds sleep = kFirstSleep;
  while (true) {
    int is_done = 0;
    {
      const std::lock_guard lock(mutex_);
      CRIA_RETURN_IF_ERROR(CheckMpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(),
                                                &is_done, MPI_STATUSES_IGNORE),
                                    "exchanging with other ranks"));
    }
    if (is_done != 0) return {};
    watch_->LetThrough();
    const Clock::duration waited = Clock::now() - begin;
    if (waited < kSpinTime) {
      // Other ranks may share the processor.
      sched_yield();
      continue;
    }
    std::this_thread::sleep_for(sleep);
    if (waited < kBriefTime) continue;
    sleep = std::min<std::chrono::nanoseconds>(sleep + sleep / 2, kLongestSleep);
  }
}

}  // namespace cria::mpi
