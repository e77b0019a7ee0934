#include "ranks/ranked_loader.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "llm/turn.h"
#include "model/model_outline.h"
#include "ranks/ordered_collective.h"
#include "ranks/ranked_engines.h"
#include "ranks/thread_transport.h"
#include "support/converted_model.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

using support::ConvertedModel;

EngineOptions SomeOptions() {
  return {.num_threads = 1, .context_tokens = 64, .chunk_tokens = 16, .kv_type = KvType::kF16};
}

// Runs `task` on rank 0, which then lets the others end. Returns how these ended.
std::vector<Status> WithFollowers(size_t num_ranks,
                                  const std::function<void(RankedLoader&)>& task) {
  ThreadMailboxes boxes(num_ranks);
  std::vector<Status> statuses(num_ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadTransport transport(boxes, rank);
      OrderedCollective collective(transport);
      RankedLoader loader(collective);
      statuses[rank] = loader.Meet("1.0");
      if (!statuses[rank]) return;
      if (rank == 0) {
        task(loader);
        statuses[rank] = loader.End();
      } else {
        statuses[rank] = loader.Follow(nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

void ExpectAllEnded(const std::vector<Status>& statuses) {
  for (const Status& status : statuses) EXPECT_TRUE(status) << status.error().message();
}

TEST(RankedLoader, LoadsOnAllRanksWithTheSameOptions) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  const std::vector<int32_t> prompt = {5, 6, 7, 8};
  EngineOptions options = SomeOptions();
  options.drafts.ngram_tokens = 2;
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), options));
  const std::vector<int32_t> text = TextOf(*alone, prompt, {.temperature = 0.0f}, 30);
  ExpectAllEnded(WithFollowers(3, [&](RankedLoader& loader) {
    const std::unique_ptr<Engine> engine = Unwrap(loader.Load(model.path(), options, {}));
    EXPECT_EQ(TextOf(*engine, prompt, {.temperature = 0.0f}, 30), text);
  }));
}

TEST(RankedLoader, TheCacheIsAsTheModelFilePrefersIfNoTypeIsNamed) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  EngineOptions options = SomeOptions();
  options.kv_type.reset();
  const std::vector<int32_t> prompt = {5, 6, 7, 8};
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), options));
  EXPECT_EQ(alone->memory_plan().options.decoder.kv_type, KvType::kInt8);
  const std::vector<int32_t> text = TextOf(*alone, prompt, {.temperature = 0.0f}, 30);
  ExpectAllEnded(WithFollowers(3, [&](RankedLoader& loader) {
    const std::unique_ptr<Engine> engine = Unwrap(loader.Load(model.path(), options, {}));
    EXPECT_EQ(TextOf(*engine, prompt, {.temperature = 0.0f}, 30), text);
  }));
}

// The draft model is the same one in int8, so that most drafts are right.
TEST(RankedLoader, ADraftModelRunsOnRank0Alone) {
  const ConvertedModel model(support::SpecGqa(), {.weights = Scheme::kF32});
  const ConvertedModel draft(support::SpecGqa(), {.weights = Scheme::kQc8w});
  const std::vector<int32_t> prompt = {5, 6, 7, 8};
  const SamplerOptions sampled = {.top_k = 5, .temperature = 1.0f, .seed = 3};
  const std::unique_ptr<Engine> alone = Unwrap(Engine::Load(model.path(), SomeOptions()));
  const std::vector<int32_t> greedy_text = TextOf(*alone, prompt, {.temperature = 0.0f}, 30);
  const std::vector<int32_t> sampled_text = TextOf(*alone, prompt, sampled, 30);
  EngineOptions options = SomeOptions();
  options.draft_model_path = draft.path();
  options.drafts = {.max_tokens = 4, .min_tokens = 4};
  for (const size_t num_ranks : {2, 4}) {
    ExpectAllEnded(WithFollowers(num_ranks, [&](RankedLoader& loader) {
      const std::unique_ptr<Engine> engine = Unwrap(loader.Load(model.path(), options, {}));
      EXPECT_EQ(TextOf(*engine, prompt, {.temperature = 0.0f}, 30), greedy_text);
      if (CanDraft(OutlineOf(engine->file()))) {
        EXPECT_LT(engine->scheduler().stats().num_forwards, 20u);
      }
      EXPECT_EQ(TextOf(*engine, prompt, sampled, 30), sampled_text);
    }));
  }
}

TEST(RankedLoader, EndsWithoutAModel) {
  ExpectAllEnded(WithFollowers(3, [](RankedLoader&) {}));
}

TEST(RankedLoader, GoesOnAfterAnError) {
  const ConvertedModel model;
  ExpectAllEnded(WithFollowers(2, [&](RankedLoader& loader) {
    const auto missing = loader.Load(model.path() + ".missing", SomeOptions(), {});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
    EngineOptions small = SomeOptions();
    small.memory_limit_bytes = 1000;
    const auto refused = loader.Load(model.path(), small, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), ErrorCode::kOutOfMemory);
    EXPECT_FALSE(loader.Load(model.path(), SomeOptions(), {.weights = {1.0, 2.0, 3.0}}));
    EngineOptions drafts = SomeOptions();
    drafts.draft_model_path = model.path() + ".missing";
    EXPECT_FALSE(loader.Load(model.path(), drafts, {}));
    const auto loaded = loader.Load(model.path(), SomeOptions(), {.weights = {3.0, 1.0}});
    ASSERT_TRUE(loaded) << loaded.error().message();
  }));
}

TEST(RankedLoader, LoadsAgain) {
  const ConvertedModel model;
  ExpectAllEnded(WithFollowers(3, [&](RankedLoader& loader) {
    for (const size_t context_tokens : {size_t{64}, size_t{128}}) {
      EngineOptions options = SomeOptions();
      options.context_tokens = context_tokens;
      const auto engine = loader.Load(model.path(), options, {});
      ASSERT_TRUE(engine) << engine.error().message();
      EXPECT_EQ((*engine)->decoder().context_tokens(), context_tokens);
      const std::unique_ptr<Session> session = (*engine)->NewSession();
      EXPECT_TRUE(Turn(*session).Prefill(std::vector<int32_t>{3, 4, 5}));
    }
  }));
}

// Lets two ranks meet, both of which must fail with the sentence.
void ExpectNoMeeting(const std::function<Status(RankedLoader&, size_t rank)>& meet,
                     const char* sentence) {
  ThreadMailboxes boxes(2);
  std::vector<Status> statuses(2);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadTransport transport(boxes, rank);
      OrderedCollective collective(transport);
      RankedLoader loader(collective);
      statuses[rank] = meet(loader, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Status& status : statuses) {
    ASSERT_FALSE(status);
    EXPECT_STREQ(status.error().message().c_str(), sentence);
  }
}

TEST(RankedLoader, RefusesAnotherVersion) {
  ExpectNoMeeting(
      [](RankedLoader& loader, size_t rank) { return loader.Meet(rank == 0 ? "1.0" : "1.1"); },
      "rank 1 has another version of cria than rank 0: give all ranks the same");
}

TEST(RankedLoader, RefusesAddressesOfAnotherSize) {
  ExpectNoMeeting(
      [](RankedLoader& loader, size_t rank) { return loader.Meet("1.0", rank == 0 ? 8 : 4); },
      "rank 1 has addresses of another size (32 or 64 bits) than rank 0: give all ranks the same");
}

}  // namespace
}  // namespace cria::ranks
