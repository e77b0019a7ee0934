#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/platform.h"
#include "cria/error.h"
#include "server/models/model_source.h"

namespace cria::server {

// The models of a server. A model is loaded when it is first asked for. It is given up after it was
// idle for some time, or, the one that was used least recently first, when another one does not fit
// beside it; a model that is in use never is. The next one is loaded only after the memory of those
// is free, so that the process never takes more than the limits allow.
//
// Requests get their models in the order in which they asked: one whose model does not fit waits
// until others are idle, and those behind it wait, too, so that it gets its turn. Thread-safe.
class ModelStore {
 public:
  using Clock = std::chrono::steady_clock;

  // Idle models with this time stay until another one needs their memory.
  static constexpr Clock::duration kForever = Clock::duration::max();
  static constexpr std::chrono::minutes kDefaultKeepAlive{5};  // As ollama has it.

  struct NamedSource {
    std::string name;
    std::unique_ptr<ModelSource> source;
  };
  struct Options {
    platform::MemoryUsage program;  // What the process uses without a model.
    Clock::duration keep_alive = kDefaultKeepAlive;
    std::function<Clock::time_point()> now = Clock::now;
  };

  // The use of a loaded model, until it is destroyed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    size_t index() const { return index_; }
    LoadedModel& model() const { return *store_->entries_[index_].model; }

   private:
    friend class ModelStore;
    Lease(ModelStore& store, size_t index, bool counts)
        : store_(&store), index_(index), counts_(counts) {}

    ModelStore* store_;  // Null: moved from.
    size_t index_;
    bool counts_;  // As a use, behind which the model's time begins again.
  };

  // What a request asks for.
  struct Request {
    size_t index = 0;
    // How long the model stays after it; absent: as long as the options say.
    std::optional<Clock::duration> keep_alive;
    const std::atomic<bool>* gone = nullptr;  // Becomes true if the client goes away; may be null.
  };

  enum class State : uint8_t { kUnloaded, kLoading, kLoaded, kUnloading };
  struct Figures {
    State state = State::kUnloaded;
    size_t num_leases = 0;
    uint64_t num_loads = 0;          // So many times it was loaded since the beginning.
    Clock::duration load_time = {};  // What all of them took.
    // The time at which the model is given up if it is idle. Absent if the model is not loaded, or
    // stays until another one needs its memory.
    std::optional<Clock::time_point> expiry;
    platform::MemoryUsage demand;  // While it is loaded.
    std::string error;             // Why it could not be loaded when it was last asked for.
  };

  ModelStore(std::vector<NamedSource> sources, Options options);
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;
  // Gives up all models. There must be no leases.
  ~ModelStore();

  size_t size() const { return entries_.size(); }
  const std::string& name(size_t index) const { return entries_[index].name; }
  std::optional<size_t> Find(std::string_view name) const;
  ModelSource& source(size_t index) const { return *entries_[index].source; }

  // Waits for its turn, and loads the model if need be. Fails as ModelSource::Load does, or with
  // kCancelled if `gone` becomes true or the store is closed.
  Result<Lease> Acquire(const Request& request);
  // The model if it is loaded, without waiting. It stays loaded during the lease, but its time goes
  // on.
  std::optional<Lease> Peek(size_t index);
  // Gives up the model as soon as it is idle. A request that comes before that keeps it.
  void Unload(size_t index);
  // Gives up what has been idle for long enough. A thread of the store does that, too, if there are
  // several models.
  void GiveUpExpired();
  // Requests that wait fail, what loads a model is told to end, and nothing is loaded any more.
  void Close();

  Figures figures(size_t index) const;
  size_t num_waiting() const;
  // What the process uses by the plans of what is loaded.
  platform::MemoryUsage planned() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Entry {
    bool IsUnloaded() const { return model == nullptr; }

    std::string name;
    std::unique_ptr<ModelSource> source;
    std::unique_ptr<LoadedModel> model;
    Figures figures;
    Clock::duration keep_alive = {};
    uint64_t last_use = 0;
  };

  Result<Lease> AcquireInTurn(Lock& lock, uint64_t ticket, const Request& request);
  // Waits until `condition` holds. Fails with kCancelled if the client has gone
  // away or the store is closed.
  template <typename Condition>
  Status Await(Lock& lock, const Request& request, const Condition& condition);
  // Load and GiveUp release the lock meanwhile, and no other model changes then.
  Status Load(Lock& lock, Entry& entry);
  void GiveUp(Lock& lock, Entry& entry);
  // The idle model that was used least recently; null if there is none.
  Entry* FindIdle();
  // An idle model whose time is over. If there is none, `next` is when the next one's is.
  Entry* FindExpired(std::optional<Clock::time_point>& next);
  platform::MemoryUsage Planned() const;
  Lease Use(size_t index);
  void Return(const Lease& lease);
  void SetExpiry(Entry& entry) const;
  void Keep();

  const Options options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;
  std::deque<uint64_t> waiting_;  // Tickets of requests, in their order.
  uint64_t num_tickets_ = 0;
  uint64_t num_uses_ = 0;
  bool is_changing_ = false;  // A model is being loaded or given up.
  bool is_closed_ = false;
  std::atomic<bool> ends_ = false;
  std::thread keeper_;
};

}  // namespace cria::server
