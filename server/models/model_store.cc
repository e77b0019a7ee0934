#include "server/models/model_store.h"

#include <algorithm>
#include <utility>

namespace cria::server {
namespace {

bool IsSet(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

void Add(const platform::MemoryUsage& more, platform::MemoryUsage& sum) {
  sum.private_bytes += more.private_bytes;
  sum.file_mapped_bytes += more.file_mapped_bytes;
  sum.virtual_bytes += more.virtual_bytes;
}

}  // namespace

ModelStore::Lease::Lease(Lease&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)), index_(other.index_), counts_(other.counts_) {}

ModelStore::Lease::~Lease() {
  if (store_ != nullptr) store_->Return(*this);
}

ModelStore::ModelStore(std::vector<NamedSource> sources, Options options)
    : options_(std::move(options)) {
  entries_.reserve(sources.size());
  for (NamedSource& source : sources) {
    entries_.push_back({.name = std::move(source.name), .source = std::move(source.source)});
  }
  if (entries_.size() > 1) keeper_ = std::thread([this] { Keep(); });
}

ModelStore::~ModelStore() {
  Close();
  if (keeper_.joinable()) keeper_.join();
}

std::optional<size_t> ModelStore::Find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  if (found == entries_.end()) return std::nullopt;
  return static_cast<size_t>(found - entries_.begin());
}

Result<ModelStore::Lease> ModelStore::Acquire(const Request& request) {
  Lock lock(mutex_);
  const uint64_t ticket = ++num_tickets_;
  waiting_.push_back(ticket);
  Result<Lease> lease = AcquireInTurn(lock, ticket, request);
  std::erase(waiting_, ticket);
  changed_.notify_all();
  return lease;
}

template <typename Condition>
Status ModelStore::Await(Lock& lock, const Request& request, const Condition& condition) {
  // Nothing notifies of a client that goes away.
  constexpr std::chrono::milliseconds kLook{20};
  while (true) {
    if (is_closed_) return Fail(ErrorCode::kCancelled, "the server is shutting down");
    if (IsSet(request.gone)) return Fail(ErrorCode::kCancelled, "the client has gone away");
    if (condition()) return {};
    if (request.gone == nullptr) {
      changed_.wait(lock);
    } else {
      changed_.wait_for(lock, kLook);
    }
  }
}

Result<ModelStore::Lease> ModelStore::AcquireInTurn(Lock& lock, uint64_t ticket,
                                                    const Request& request) {
  Entry& entry = entries_[request.index];
  // A model may need more than its plan said, because its packed weights cannot be mapped.
  bool needs_all = false;
  const auto is_alone = [&] { return std::ranges::all_of(entries_, &Entry::IsUnloaded); };
  const auto fits = [&] { return is_alone() || (!needs_all && entry.source->Fits(Planned())); };
  while (true) {
    CRIA_RETURN_IF_ERROR(
        Await(lock, request, [&] { return waiting_.front() == ticket && !is_changing_; }));
    if (!entry.IsUnloaded()) {
      entry.keep_alive = request.keep_alive.value_or(options_.keep_alive);
      return Use(request.index);
    }
    // No other model is given up for one that does not fit alone.
    if (Status alone = entry.source->CheckFits(options_.program); !alone) {
      entry.figures.error = alone.error().message();
      return std::unexpected(std::move(alone.error()));
    }
    if (!fits()) {
      CRIA_RETURN_IF_ERROR(
          Await(lock, request, [&] { return !is_changing_ && (FindIdle() != nullptr || fits()); }));
      if (!fits()) GiveUp(lock, *FindIdle());
      continue;
    }
    const bool was_alone = is_alone();
    if (Status loaded = Load(lock, entry); !loaded) {
      if (was_alone || loaded.error().code() != ErrorCode::kOutOfMemory) {
        return std::unexpected(std::move(loaded.error()));
      }
      needs_all = true;
    }
  }
}

std::optional<ModelStore::Lease> ModelStore::Peek(size_t index) {
  const Lock lock(mutex_);
  if (entries_[index].IsUnloaded()) return std::nullopt;
  ++entries_[index].figures.num_leases;
  return Lease(*this, index, /*counts=*/false);
}

void ModelStore::Unload(size_t index) {
  const Lock lock(mutex_);
  Entry& entry = entries_[index];
  entry.keep_alive = {};
  if (!entry.IsUnloaded()) SetExpiry(entry);
  changed_.notify_all();
}

Status ModelStore::Load(Lock& lock, Entry& entry) {
  const platform::MemoryUsage program = Planned();
  is_changing_ = true;
  entry.figures.state = State::kLoading;
  entry.figures.error.clear();
  const Clock::time_point begin = Clock::now();
  lock.unlock();
  Result<std::unique_ptr<LoadedModel>> loaded = entry.source->Load(program, ends_);
  lock.lock();
  is_changing_ = false;
  changed_.notify_all();
  if (!loaded) {
    entry.figures.state = State::kUnloaded;
    entry.figures.error = loaded.error().message();
    return std::unexpected(loaded.error());
  }
  entry.model = std::move(*loaded);
  entry.figures.state = State::kLoaded;
  entry.figures.demand = entry.model->demand();
  ++entry.figures.num_loads;
  entry.figures.load_time += Clock::now() - begin;
  return {};
}

void ModelStore::GiveUp(Lock& lock, Entry& entry) {
  is_changing_ = true;
  entry.figures.state = State::kUnloading;
  entry.figures.expiry.reset();
  std::unique_ptr<LoadedModel> model = std::move(entry.model);
  lock.unlock();
  model.reset();
  platform::ReturnFreedMemory();
  lock.lock();
  is_changing_ = false;
  entry.figures.state = State::kUnloaded;
  entry.figures.demand = {};
  changed_.notify_all();
}

ModelStore::Entry* ModelStore::FindIdle() {
  Entry* oldest = nullptr;
  for (Entry& entry : entries_) {
    if (entry.IsUnloaded() || entry.figures.num_leases != 0) continue;
    if (oldest == nullptr || entry.last_use < oldest->last_use) oldest = &entry;
  }
  return oldest;
}

ModelStore::Entry* ModelStore::FindExpired(std::optional<Clock::time_point>& next) {
  const Clock::time_point now = options_.now();
  for (Entry& entry : entries_) {
    const std::optional<Clock::time_point>& expiry = entry.figures.expiry;
    if (!expiry || entry.figures.num_leases != 0) continue;
    if (*expiry <= now) return &entry;
    if (!next || *expiry < *next) next = expiry;
  }
  return nullptr;
}

void ModelStore::GiveUpExpired() {
  Lock lock(mutex_);
  std::optional<Clock::time_point> next;
  while (true) {
    changed_.wait(lock, [this] { return !is_changing_; });
    Entry* const expired = FindExpired(next);
    if (expired == nullptr) return;
    GiveUp(lock, *expired);
  }
}

void ModelStore::Keep() {
  Lock lock(mutex_);
  while (!is_closed_) {
    std::optional<Clock::time_point> next;
    Entry* const expired = is_changing_ ? nullptr : FindExpired(next);
    if (expired != nullptr) {
      GiveUp(lock, *expired);
    } else if (next) {
      changed_.wait_for(lock, *next - options_.now());
    } else {
      changed_.wait(lock);
    }
  }
}

platform::MemoryUsage ModelStore::Planned() const {
  platform::MemoryUsage sum = options_.program;
  for (const Entry& entry : entries_) {
    if (!entry.IsUnloaded()) Add(entry.figures.demand, sum);
  }
  return sum;
}

ModelStore::Lease ModelStore::Use(size_t index) {
  Entry& entry = entries_[index];
  ++entry.figures.num_leases;
  entry.figures.expiry.reset();
  entry.last_use = ++num_uses_;
  return {*this, index, /*counts=*/true};
}

void ModelStore::Return(const Lease& lease) {
  const Lock lock(mutex_);
  Entry& entry = entries_[lease.index()];
  --entry.figures.num_leases;
  // The last one of several uses sets it anew.
  if (lease.counts_) SetExpiry(entry);
  changed_.notify_all();
}

void ModelStore::SetExpiry(Entry& entry) const {
  if (entry.keep_alive == kForever) return entry.figures.expiry.reset();
  entry.figures.expiry = options_.now() + entry.keep_alive;
}

void ModelStore::Close() {
  const Lock lock(mutex_);
  is_closed_ = true;
  ends_ = true;
  changed_.notify_all();
}

ModelStore::Figures ModelStore::figures(size_t index) const {
  const Lock lock(mutex_);
  return entries_[index].figures;
}

size_t ModelStore::num_waiting() const {
  const Lock lock(mutex_);
  return waiting_.size();
}

platform::MemoryUsage ModelStore::planned() const {
  const Lock lock(mutex_);
  return Planned();
}

}  // namespace cria::server
