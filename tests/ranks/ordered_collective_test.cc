#include "ranks/ordered_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ranks/agreement.h"
#include "ranks/thread_transport.h"
#include "ranks/wire_format.h"
#include "support/unwrap.h"

namespace cria::ranks {
namespace {

constexpr WireType kWireTypes[] = {WireType::kF32, WireType::kF16, WireType::kInt8};
constexpr size_t kMaxValues = 4000;

// Calls `task` with the collective of each rank, in a thread of its own, and returns what each
// sent.
std::vector<size_t> OnEachRank(size_t num_ranks, const std::function<void(Collective&)>& task) {
  ThreadMailboxes boxes(num_ranks);
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadTransport transport(boxes, rank);
      OrderedCollective collective(transport);
      uint64_t bytes = 0;
      for (const WireType type : kWireTypes) {
        bytes = std::max(bytes, collective.MemoryBytes(kMaxValues, type));
      }
      Unwrap(collective.Reserve(bytes));
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
  // The numbers have different sizes, so that the order of the additions shows.
  for (float& value : values) value = normal(random) * std::exp(3.0f * normal(random));
  return values;
}

// As they arrive.
std::vector<float> Rounded(const std::vector<float>& values, WireType type) {
  std::vector<std::byte> bytes(WireBytes(values.size(), type));
  ToWire(values, type, bytes);
  std::vector<float> rounded(values.size());
  FromWire(bytes, type, rounded);
  return rounded;
}

// What `num_ranks` ranks add up, by the definition.
std::vector<float> NaiveSums(size_t num_ranks, size_t count, WireType type) {
  std::vector<float> sums = Rounded(SomeValues(0, count), type);
  for (size_t rank = 1; rank < num_ranks; ++rank) {
    const std::vector<float> values = Rounded(SomeValues(rank, count), type);
    for (size_t i = 0; i < count; ++i) sums[i] += values[i];
  }
  return num_ranks == 2 ? sums : Rounded(sums, type);
}

TEST(OrderedCollective, AddsInTheOrderOfTheRanks) {
  for (const WireType type : kWireTypes) {
    for (const size_t num_ranks : {2, 3, 4, 6}) {
      for (const size_t count :
           {size_t{1}, size_t{2}, size_t{5}, size_t{33}, size_t{999}, size_t{1000}, kMaxValues}) {
        SCOPED_TRACE(std::to_string(num_ranks) + " ranks, " + std::to_string(count) + " values");
        const std::vector<float> expected = NaiveSums(num_ranks, count, type);
        std::vector<std::vector<float>> sums(num_ranks);
        const std::vector<size_t> sent = OnEachRank(num_ranks, [&](Collective& collective) {
          std::vector<float>& values = sums[collective.rank()];
          values = SomeValues(collective.rank(), count);
          Unwrap(collective.Sum(values, type));
        });
        for (size_t rank = 0; rank < num_ranks; ++rank) {
          EXPECT_EQ(std::memcmp(sums[rank].data(), expected.data(), count * sizeof(float)), 0)
              << "rank " << rank;
          EXPECT_EQ(sent[rank], OrderedCollective::SentBytes(count, type, num_ranks, rank));
          if (OrderedCollective::NumExchanges(count, type, num_ranks) == 2) {
            EXPECT_LT(sent[rank], 2 * (WireBytes(count, type) + 64 * num_ranks));
          }
        }
      }
    }
  }
}

// Whatever their number: all ranks get the same bits, not far from the sums of what was not
// rounded.
TEST(OrderedCollective, AllRanksGetTheSameRoundedSums) {
  for (const WireType type : {WireType::kF16, WireType::kInt8}) {
    for (const size_t num_ranks : {2, 3, 5}) {
      for (const size_t count : {1, 31, 100, 1234, 3999}) {
        std::vector<std::vector<float>> sums(num_ranks);
        OnEachRank(num_ranks, [&](Collective& collective) {
          std::vector<float>& values = sums[collective.rank()];
          values.resize(count);
          for (size_t i = 0; i < count; ++i) {
            values[i] = std::sin(static_cast<float>(i + 7 * collective.rank()));
          }
          Unwrap(collective.Sum(values, type));
        });
        const float step = type == WireType::kF16 ? 0.001f : 1.0f / 127.0f;
        for (size_t i = 0; i < count; ++i) {
          float exact = 0.0f;
          for (size_t rank = 0; rank < num_ranks; ++rank) {
            EXPECT_EQ(sums[rank][i], sums[0][i]);
            exact += std::sin(static_cast<float>(i + 7 * rank));
          }
          EXPECT_NEAR(sums[0][i], exact, step * static_cast<float>(num_ranks));
        }
      }
    }
  }
}

// So a token has the same bits alone and beside others, in a draft or of another conversation.
TEST(OrderedCollective, SumsOfARowDoNotDependOnOthers) {
  constexpr size_t kRows = 5;
  for (const WireType type : kWireTypes) {
    for (const size_t num_ranks : {2, 3, 4, 5, 6, 7, 8}) {
      for (const size_t width : {32, 64, 96, 576, 736}) {
        SCOPED_TRACE(std::to_string(num_ranks) + " ranks, " + std::to_string(width) + " values");
        OnEachRank(num_ranks, [&](Collective& collective) {
          std::vector<float> together = SomeValues(collective.rank(), kRows * width);
          std::vector<float> alone = together;
          Unwrap(collective.Sum(together, type));
          for (size_t row = 0; row < kRows; ++row) {
            Unwrap(collective.Sum(std::span(alone).subspan(row * width, width), type));
          }
          EXPECT_EQ(alone, together);
        });
      }
    }
  }
}

TEST(OrderedCollective, RefusesMoreValuesThanWereReserved) {
  OnEachRank(3, [&](Collective& collective) {
    std::vector<float> values(3 * kMaxValues);
    for (const WireType type : kWireTypes) EXPECT_FALSE(collective.Sum(values, type));
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
