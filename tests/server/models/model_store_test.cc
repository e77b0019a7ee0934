#include "server/models/model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/unwrap.h"

namespace cria::server {
namespace {

using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using State = ModelStore::State;

// The memory of a process whose models only say what they take.
struct FakeMemory {
  static constexpr uint64_t kProgramBytes = 10;

  uint64_t limit = 100;
  std::atomic<uint64_t> used = kProgramBytes;
  std::atomic<uint64_t> most = kProgramBytes;
  std::vector<std::string> events;  // What is loaded and given up; one thread at a time writes.

  void Take(uint64_t bytes) {
    const uint64_t now = used += bytes;
    uint64_t before = most;
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
  }
};

class FakeModel final : public LoadedModel {
 public:
  FakeModel(FakeMemory& memory, std::string name, uint64_t bytes)
      : memory_(memory), name_(std::move(name)), bytes_(bytes) {
    memory_.events.push_back("+" + name_);
    memory_.Take(bytes_);
  }
  ~FakeModel() override {
    memory_.events.push_back("-" + name_);
    memory_.used -= bytes_;
  }
  platform::MemoryUsage demand() const override { return {.private_bytes = bytes_}; }

 private:
  FakeMemory& memory_;
  std::string name_;
  uint64_t bytes_;
};

class FakeSource final : public ModelSource {
 public:
  FakeSource(FakeMemory& memory, std::string name, uint64_t bytes)
      : memory_(memory), name_(std::move(name)), bytes_(bytes) {}

  bool Fits(const platform::MemoryUsage& program) override {
    return program.private_bytes + bytes_ <= memory_.limit;
  }
  Status CheckFits(const platform::MemoryUsage& program) override {
    if (Fits(program)) return {};
    return Fail(ErrorCode::kOutOfMemory, name_ + " does not fit");
  }
  Result<std::unique_ptr<LoadedModel>> Load(const platform::MemoryUsage& program,
                                            const std::atomic<bool>& ends) override {
    if (on_load) CRIA_RETURN_IF_ERROR(on_load(program, ends));
    return std::make_unique<FakeModel>(memory_, name_, bytes_);
  }

  std::function<Status(const platform::MemoryUsage&, const std::atomic<bool>&)> on_load;

 private:
  FakeMemory& memory_;
  std::string name_;
  uint64_t bytes_;
};

class ModelStoreTest : public testing::Test {
 protected:
  // Models named "a", "b", …
  void Open(const std::vector<uint64_t>& bytes, uint64_t limit = 100) {
    memory_.limit = limit;
    std::vector<ModelStore::NamedSource> sources;
    for (size_t i = 0; i < bytes.size(); ++i) {
      std::string name(1, static_cast<char>('a' + i));
      auto source = std::make_unique<FakeSource>(memory_, name, bytes[i]);
      sources_.push_back(source.get());
      sources.push_back({std::move(name), std::move(source)});
    }
    store_ = std::make_unique<ModelStore>(
        std::move(sources),
        ModelStore::Options{.program = {.private_bytes = FakeMemory::kProgramBytes},
                            .now = [this] { return now_.load(); }});
  }
  ~ModelStoreTest() override {
    store_.reset();
    EXPECT_EQ(memory_.used, FakeMemory::kProgramBytes);
    EXPECT_LE(memory_.most, memory_.limit);
  }

  ModelStore::Lease Acquire(size_t index) { return Unwrap(store_->Acquire({.index = index})); }
  void Use(size_t index) { Acquire(index); }
  void UseFor(size_t index, ModelStore::Clock::duration keep_alive) {
    Unwrap(store_->Acquire({.index = index, .keep_alive = keep_alive}));
  }
  State StateOf(size_t index) const { return store_->figures(index).state; }
  void Advance(ModelStore::Clock::duration time) {
    now_ = now_.load() + time;
    store_->GiveUpExpired();
  }
  // Returns when so many requests wait.
  void AwaitWaiting(size_t count) {
    while (store_->num_waiting() != count) std::this_thread::yield();
  }

  FakeMemory memory_;
  std::atomic<ModelStore::Clock::time_point> now_ = ModelStore::Clock::time_point(minutes(1));
  std::vector<FakeSource*> sources_;
  std::unique_ptr<ModelStore> store_;
};

TEST_F(ModelStoreTest, AModelIsLoadedOnceWhenItIsAskedFor) {
  Open({40, 40});
  EXPECT_EQ(store_->size(), 2u);
  EXPECT_EQ(store_->Find("b"), 1u);
  EXPECT_FALSE(store_->Find("c"));
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  EXPECT_FALSE(store_->Peek(1));
  {
    const ModelStore::Lease lease = Acquire(1);
    EXPECT_EQ(lease.index(), 1u);
    EXPECT_EQ(lease.model().demand().private_bytes, 40u);
    const ModelStore::Lease second = Acquire(1);
    EXPECT_EQ(store_->figures(1).num_leases, 2u);
  }
  Use(1);
  EXPECT_EQ(StateOf(1), State::kLoaded);
  EXPECT_EQ(store_->figures(1).num_loads, 1u);
  EXPECT_EQ(store_->planned().private_bytes, 50u);
  EXPECT_THAT(memory_.events, ElementsAre("+b"));
}

TEST_F(ModelStoreTest, TheOneThatWasUsedLeastRecentlyGoesForAnother) {
  Open({40, 40, 50});
  Use(0);
  Use(1);
  Use(0);
  Use(2);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "+b", "-b", "+c"));
  Use(1);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "+b", "-b", "+c", "-a", "+b"));
}

TEST_F(ModelStoreTest, AsManyGoAsTheNextOneNeeds) {
  Open({30, 30, 30, 85});
  for (size_t i = 0; i < 4; ++i) Use(i);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "+b", "+c", "-a", "-b", "-c", "+d"));
}

TEST_F(ModelStoreTest, AModelInUseStaysUntilItsLastLeaseEnds) {
  Open({60, 60});
  std::optional<ModelStore::Lease> first(Acquire(0));
  std::optional<ModelStore::Lease> second(Acquire(0));
  std::jthread other([this] { Use(1); });
  AwaitWaiting(1);
  first.reset();
  EXPECT_EQ(StateOf(0), State::kLoaded);
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  second.reset();
  other.join();
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  EXPECT_EQ(StateOf(1), State::kLoaded);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "-a", "+b"));
}

TEST_F(ModelStoreTest, RequestsGetTheirModelsInTheirOrder) {
  Open({60, 60});
  std::optional<ModelStore::Lease> held(Acquire(0));
  std::mutex mutex;
  std::vector<size_t> order;
  std::vector<std::jthread> threads;
  // One for the other model waits; those for the loaded one come later, and do not pass it.
  for (const size_t index : {1, 0, 1, 0}) {
    threads.emplace_back([&, index] {
      const ModelStore::Lease lease = Acquire(index);
      const std::lock_guard lock(mutex);
      order.push_back(index);
    });
    AwaitWaiting(threads.size());
  }
  held.reset();
  threads.clear();
  EXPECT_THAT(order, ElementsAre(1, 0, 1, 0));
}

TEST_F(ModelStoreTest, AnIdleModelGoesAfterItsTime) {
  Open({20, 20, 20});
  Use(0);
  UseFor(1, minutes(10));
  UseFor(2, ModelStore::kForever);
  EXPECT_EQ(store_->figures(0).expiry, now_.load() + minutes(5));
  EXPECT_FALSE(store_->figures(2).expiry);
  Advance(minutes(5));
  EXPECT_THAT(memory_.events, ElementsAre("+a", "+b", "+c", "-a"));
  Use(1);  // It has the usual time again.
  Advance(minutes(5));
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  Advance(minutes(10'000));
  EXPECT_EQ(StateOf(2), State::kLoaded);
}

TEST_F(ModelStoreTest, TimeDoesNotCountWhileAModelIsInUse) {
  Open({20});
  {
    const ModelStore::Lease lease = Acquire(0);
    Advance(minutes(60));
    EXPECT_EQ(StateOf(0), State::kLoaded);
  }
  Advance(minutes(4));
  EXPECT_EQ(StateOf(0), State::kLoaded);
  Advance(minutes(1));
  EXPECT_EQ(StateOf(0), State::kUnloaded);
}

TEST_F(ModelStoreTest, APeekHoldsAModelAndDoesNotProlongItsTime) {
  Open({20, 20});
  Use(0);
  Use(1);
  const auto expiry = store_->figures(0).expiry;
  std::optional<ModelStore::Lease> peek = store_->Peek(0);
  ASSERT_TRUE(peek);
  EXPECT_EQ(peek->model().demand().private_bytes, 20u);
  Advance(minutes(5));
  EXPECT_EQ(StateOf(0), State::kLoaded);
  EXPECT_EQ(StateOf(1), State::kUnloaded);
  EXPECT_EQ(store_->figures(0).expiry, expiry);
  peek.reset();
  store_->GiveUpExpired();
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  EXPECT_FALSE(store_->Peek(0));
}

TEST_F(ModelStoreTest, AKeptModelGoesForAnotherAllTheSame) {
  Open({60, 60});
  UseFor(0, ModelStore::kForever);
  Use(1);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "-a", "+b"));
}

TEST_F(ModelStoreTest, WithoutTimeAModelGoesBehindItsAnswer) {
  Open({20});
  UseFor(0, {});
  store_->GiveUpExpired();
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "-a"));
}

TEST_F(ModelStoreTest, UnloadingWaitsForTheAnswer) {
  Open({20});
  store_->Unload(0);
  std::optional<ModelStore::Lease> lease(Acquire(0));
  store_->Unload(0);
  store_->GiveUpExpired();
  EXPECT_EQ(StateOf(0), State::kLoaded);
  lease.reset();
  store_->GiveUpExpired();
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  Use(0);
  store_->Unload(0);
  store_->GiveUpExpired();
  EXPECT_EQ(StateOf(0), State::kUnloaded);
}

TEST_F(ModelStoreTest, AClientThatGoesAwayWaitsNoMore) {
  Open({60, 60});
  const ModelStore::Lease held = Acquire(0);
  std::atomic<bool> gone = false;
  std::jthread other([&] {
    const auto lease = store_->Acquire({.index = 1, .gone = &gone});
    ASSERT_FALSE(lease);
    EXPECT_EQ(lease.error().code(), ErrorCode::kCancelled);
  });
  AwaitWaiting(1);
  gone = true;
  other.join();
  EXPECT_EQ(store_->num_waiting(), 0u);
  const ModelStore::Lease second = Acquire(0);
}

TEST_F(ModelStoreTest, NothingGoesForAModelThatDoesNotFitAlone) {
  Open({40, 95});
  Use(0);
  const auto lease = store_->Acquire({.index = 1});
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(store_->figures(1).error, HasSubstr("b does not fit"));
  EXPECT_THAT(memory_.events, ElementsAre("+a"));
}

TEST_F(ModelStoreTest, AModelThatFailsIsTriedAgainForTheNextRequest) {
  Open({40, 40});
  sources_[0]->on_load = [](const auto&, const auto&) {
    return Fail(ErrorCode::kInvalidFile, "a.cria: is broken");
  };
  const auto lease = store_->Acquire({.index = 0});
  ASSERT_FALSE(lease);
  EXPECT_EQ(lease.error().code(), ErrorCode::kInvalidFile);
  EXPECT_EQ(store_->figures(0).error, "a.cria: is broken");
  EXPECT_EQ(StateOf(0), State::kUnloaded);
  Use(1);
  sources_[0]->on_load = nullptr;
  Use(0);
  EXPECT_EQ(store_->figures(0).error, "");
  EXPECT_EQ(store_->figures(0).num_loads, 1u);
}

TEST_F(ModelStoreTest, OthersGoIfAModelTakesMoreThanItsPlanSaid) {
  Open({20, 20});
  sources_[1]->on_load = [](const platform::MemoryUsage& program, const auto&) -> Status {
    if (program.private_bytes == FakeMemory::kProgramBytes) return {};
    return Fail(ErrorCode::kOutOfMemory, "there is too little");
  };
  Use(0);
  Use(1);
  EXPECT_THAT(memory_.events, ElementsAre("+a", "-a", "+b"));
}

TEST_F(ModelStoreTest, ClosingEndsLoadingAndWaiting) {
  Open({60, 60});
  std::latch loads(1);
  sources_[0]->on_load = [&](const auto&, const std::atomic<bool>& ends) -> Status {
    loads.count_down();
    while (!ends) std::this_thread::yield();
    return Fail(ErrorCode::kCancelled, "it was told to end");
  };
  std::vector<std::jthread> threads;
  for (const size_t index : {0, 0, 1}) {
    threads.emplace_back([this, index] {
      const auto lease = store_->Acquire({.index = index});
      ASSERT_FALSE(lease);
      EXPECT_EQ(lease.error().code(), ErrorCode::kCancelled);
    });
    if (index == 0) loads.wait();
  }
  AwaitWaiting(3);
  EXPECT_EQ(StateOf(0), State::kLoading);
  store_->Close();
  threads.clear();
  EXPECT_FALSE(store_->Acquire({.index = 1}));
  EXPECT_TRUE(memory_.events.empty());
}

TEST_F(ModelStoreTest, ManyClientsOfModelsThatDoNotFitTogetherAllGetTheirTurn) {
  Open({60, 50, 30}, 100);
  constexpr int kRequests = 200;
  std::atomic<int> num_answers = 0;
  std::atomic<int> num_given_up = 0;
  {
    std::vector<std::jthread> clients;
    for (unsigned seed = 0; seed < 8; ++seed) {
      clients.emplace_back([&, seed] {
        std::mt19937 random(seed);
        const std::atomic<bool> gone = seed % 4 == 3;
        for (int i = 0; i < kRequests; ++i) {
          const size_t index = random() % 3;
          ModelStore::Request request = {.index = index, .gone = &gone};
          if (random() % 4 == 0) request.keep_alive = ModelStore::Clock::duration(0);
          const auto lease = store_->Acquire(request);
          if (!lease) {
            EXPECT_EQ(lease.error().code(), ErrorCode::kCancelled);
            ++num_given_up;
            continue;
          }
          EXPECT_EQ(lease->index(), index);
          EXPECT_LE(memory_.used, memory_.limit);
          ++num_answers;
          if (random() % 8 == 0) store_->Unload(index);
        }
      });
    }
  }
  EXPECT_EQ(num_answers, 6 * kRequests);
  EXPECT_EQ(num_given_up, 2 * kRequests);
}

}  // namespace
}  // namespace cria::server
