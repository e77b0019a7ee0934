#include "mpi/roll_call.h"

#include <pmix.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>

namespace cria::mpi {
namespace {

constexpr auto kConnectPoll = std::chrono::milliseconds(50);
constexpr auto kPublishPeriod = std::chrono::seconds(1);
// Two beats that are late by half a period are still seen.
constexpr auto kMissingTime = std::chrono::milliseconds(2500);
// mpirun itself answers at once. A server that cannot reach mpirun may ignore this.
constexpr int kServerSeconds = 2;

using Key = std::array<char, PMIX_MAX_KEYLEN + 1>;

Key KeyOf(size_t rank) {
  Key key = {};
  std::snprintf(key.data(), key.size(), "cria.beat.%zu", rank);
  return key;
}

pmix_info_t Timeout() {
  pmix_info_t info;
  PMIx_Info_load(&info, PMIX_TIMEOUT, &kServerSeconds, PMIX_INT);
  return info;
}

// What is published cannot be changed: it is taken back first.
void Publish(size_t rank, uint32_t beat) {
  Key key = KeyOf(rank);
  const pmix_info_t timeout = Timeout();
  if (beat > 1) {
    std::array<char*, 2> keys = {key.data(), nullptr};
    PMIx_Unpublish(keys.data(), &timeout, 1);
  }
  std::array<pmix_info_t, 2> info = {};
  PMIx_Info_load(&info[0], key.data(), &beat, PMIX_UINT32);
  info[1] = timeout;
  PMIx_Publish(info.data(), info.size());
}

// Nothing: the rank has not begun, or is between two beats.
std::optional<uint32_t> LookUp(size_t rank) {
  pmix_pdata_t data = {};
  std::ranges::copy(KeyOf(rank), data.key);
  const pmix_info_t timeout = Timeout();
  const pmix_status_t status = PMIx_Lookup(&data, 1, &timeout, 1);
  if (status != PMIX_SUCCESS || data.value.type != PMIX_UINT32) return std::nullopt;
  return data.value.data.uint32;
}

// The number of ranks that mpirun started; 0 if it does not tell.
size_t NumRanks(const pmix_proc_t& self) {
  pmix_proc_t all;
  PMIx_Load_procid(&all, self.nspace, PMIX_RANK_WILDCARD);
  pmix_value_t* value = nullptr;
  if (PMIx_Get(&all, PMIX_JOB_SIZE, nullptr, 0, &value) != PMIX_SUCCESS) return 0;
  const size_t count = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
  PMIx_Value_free(value, 1);
  return count;
}

}  // namespace

RollCall::RollCall() : thread_([this] { Run(); }) {}

RollCall::~RollCall() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

template <typename Duration>
bool RollCall::Sleep(Duration time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this] { return is_over_; });
}

void RollCall::Run() {
  // OpenMPI fails if another one was first to initialize PMIx.
  while (PMIx_Initialized() == 0) {
    if (!Sleep(kConnectPoll)) return;
  }
  pmix_proc_t self;
  if (PMIx_Init(&self, nullptr, 0) != PMIX_SUCCESS) return;
  {
    const std::lock_guard lock(mutex_);
    is_connected_ = true;
  }
  uint32_t beat = 0;
  do {
    Publish(self.rank, ++beat);
  } while (Sleep(kPublishPeriod));
  PMIx_Finalize(nullptr, 0);
}

std::vector<size_t> RollCall::FindMissing() {
  {
    const std::lock_guard lock(mutex_);
    if (!is_connected_) return {};
  }
  // The thread keeps it initialized.
  pmix_proc_t self;
  if (PMIx_Init(&self, nullptr, 0) != PMIX_SUCCESS) return {};
  std::vector<std::optional<uint32_t>> before(NumRanks(self));
  for (size_t rank = 0; rank < before.size(); ++rank) before[rank] = LookUp(rank);
  std::vector<size_t> missing;
  if (Sleep(kMissingTime)) {
    for (size_t rank = 0; rank < before.size(); ++rank) {
      std::optional<uint32_t> beat = LookUp(rank);
      if (!beat && Sleep(kConnectPoll)) beat = LookUp(rank);
      if (!beat || beat == before[rank]) missing.push_back(rank);
    }
  }
  PMIx_Finalize(nullptr, 0);
  return missing;
}

}  // namespace cria::mpi
