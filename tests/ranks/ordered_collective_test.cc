#include "ranks/ordered_collective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ranks/agreement.h"
#include "ranks/thread_transport.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

// Calls `task` with the collective of each rank, in a thread of its own, and returns what each
// sent.
std::vector<size_t> OnEachRank(size_t num_ranks, const std::function<void(Collective&)>& task) {
  ThreadMailboxes boxes(num_ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadTransport transport(boxes, rank);
      OrderedCollective collective(transport);
      Unwrap(collective.Reserve(1000));
      task(collective);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<size_t> sent;
  for (size_t rank = 0; rank < num_ranks; ++rank) sent.push_back(boxes.sent_bytes(rank));
  return sent;
}

std::vector<float> SomeValues(size_t rank, size_t count) {
  std::mt19937 random(static_cast<uint32_t>(rank + 1));
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  // Of different sizes, so that the order of the additions shows.
  for (float& value : values) value = normal(random) * std::exp(3.0f * normal(random));
  return values;
}

TEST(OrderedCollective, AddsInTheOrderOfTheRanks) {
  for (const size_t num_ranks : {2, 3, 4, 6}) {
    for (const size_t count : {1, 2, 5, 999, 1000}) {
      std::vector<float> expected = SomeValues(0, count);
      for (size_t rank = 1; rank < num_ranks; ++rank) {
        const std::vector<float> values = SomeValues(rank, count);
        for (size_t i = 0; i < count; ++i) expected[i] += values[i];
      }
      std::vector<std::vector<float>> sums(num_ranks);
      const std::vector<size_t> sent = OnEachRank(num_ranks, [&](Collective& collective) {
        std::vector<float>& values = sums[collective.rank()];
        values = SomeValues(collective.rank(), count);
        Unwrap(collective.Sum(values));
      });
      for (size_t rank = 0; rank < num_ranks; ++rank) {
        EXPECT_EQ(std::memcmp(sums[rank].data(), expected.data(), count * sizeof(float)), 0)
            << num_ranks << " ranks, " << count << " values, rank " << rank;
        EXPECT_EQ(sent[rank], OrderedCollective::SentBytes(count, num_ranks, rank));
        EXPECT_LT(sent[rank], 2 * (count + num_ranks) * sizeof(float));
      }
    }
  }
}

TEST(OrderedCollective, RefusesMoreValuesThanWereReserved) {
  OnEachRank(3, [&](Collective& collective) {
    std::vector<float> values(1003);
    EXPECT_FALSE(collective.Sum(values));
  });
}

TEST(OrderedCollective, GathersAndBroadcasts) {
  OnEachRank(4, [&](Collective& collective) {
    const size_t rank = collective.rank();
    // Each rank sends another number of bytes.
    const std::vector<std::byte> sent(rank + 3, static_cast<std::byte>(rank));
    std::vector<std::vector<std::byte>> received;
    std::vector<std::span<std::byte>> places;
    if (rank == 0) {
      for (size_t other = 0; other < 4; ++other) received.emplace_back(other + 3);
      places.assign(received.begin(), received.end());
    }
    Unwrap(collective.Gather(sent, places));
    for (size_t other = 1; other < received.size(); ++other) {
      EXPECT_EQ(received[other], std::vector<std::byte>(other + 3, static_cast<std::byte>(other)));
    }
    std::vector<std::byte> bytes(7, static_cast<std::byte>(10 + rank));
    Unwrap(collective.Broadcast(bytes));
    EXPECT_EQ(bytes, std::vector<std::byte>(7, std::byte{10}));
  });
}

// The sentences of all ranks if each has this status and these bytes.
std::vector<std::string> Sentences(
    const std::function<std::pair<Status, std::string>(size_t rank)>& own) {
  std::vector<std::string> sentences(3);
  OnEachRank(3, [&](Collective& collective) {
    const auto [status, same] = own(collective.rank());
    const Status agreed =
        Agree(collective, status, std::as_bytes(std::span(same)), "another model");
    sentences[collective.rank()] = agreed ? "" : agreed.error().message();
  });
  return sentences;
}

TEST(Agree, GoesOnIfAllAgree) {
  EXPECT_EQ(Sentences([](size_t) { return std::pair(Status(), "abc"); }),
            std::vector<std::string>(3));
}

TEST(Agree, NamesTheRankThatFailed) {
  const std::vector<std::string> sentences = Sentences([](size_t rank) {
    Status status;
    if (rank == 2) status = Fail(ErrorCode::kNotFound, "there is no file");
    return std::pair(status, "abc");
  });
  EXPECT_EQ(sentences[0], "rank 2: there is no file");
  EXPECT_EQ(sentences[1], "rank 2: there is no file");
  EXPECT_EQ(sentences[2], "there is no file");
}

TEST(Agree, NamesTheRankThatDiffers) {
  const std::vector<std::string> sentences =
      Sentences([](size_t rank) { return std::pair(Status(), rank == 1 ? "abd" : "abc"); });
  for (const std::string& sentence : sentences) {
    EXPECT_EQ(sentence, "rank 1 has another model than rank 0: give all ranks the same");
  }
}

TEST(Agree, CutsLongSentences) {
  const std::vector<std::string> sentences = Sentences([](size_t rank) {
    Status status;
    if (rank == 0) status = Fail(ErrorCode::kNotFound, std::string(5000, 'x'));
    return std::pair(status, "");
  });
  EXPECT_EQ(sentences[0].size(), 5000u);
  EXPECT_EQ(sentences[1], std::string(999, 'x'));
}

}  // namespace
}  // namespace cria::ranks
