#include "ops/read_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace cria::ops {
namespace {

uint64_t NaiveSum(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min(sizeof word, bytes.size() - i));
    sum += word;
  }
  return sum;
}

std::vector<std::byte> RandomBytes(size_t size) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(SumOfWords, EveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = RandomBytes(1100);
  for (size_t begin = 0; begin < 17; ++begin) {
    for (size_t size = 0; begin + size <= bytes.size(); ++size) {
      const auto part = std::span(bytes).subspan(begin, size);
      ASSERT_EQ(SumOfWords(part), NaiveSum(part)) << size << " bytes from " << begin;
    }
  }
}

TEST(SumOfWords, EveryByteCounts) {
  std::vector<std::byte> bytes = RandomBytes(777);
  const uint64_t sum = SumOfWords(bytes);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    EXPECT_NE(SumOfWords(bytes), sum);
    byte ^= std::byte{0x10};
  }
}

// Nothing beyond the end is read: the sanitizers see it, and so does the sum.
TEST(SumOfWords, WhatLiesBehindDoesNotCount) {
  std::vector<std::byte> bytes = RandomBytes(200);
  const auto part = std::span(bytes).first(99);
  const uint64_t sum = SumOfWords(part);
  std::fill(bytes.begin() + 99, bytes.end(), std::byte{0xff});
  EXPECT_EQ(SumOfWords(part), sum);
}

}  // namespace
}  // namespace cria::ops
