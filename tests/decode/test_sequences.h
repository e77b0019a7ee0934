#pragma once

#include <cstddef>
#include <vector>

#include "decode/sequences.h"

namespace cria {

// Sequences with exactly the memory that they ask for.
class TestSequences {
 public:
  explicit TestSequences(const Sequences::Shape& shape)
      : memory_(Sequences::MemoryBytes(shape)), sequences_(shape, memory_) {}
  TestSequences(const TestSequences&) = delete;
  TestSequences& operator=(const TestSequences&) = delete;

  Sequences* operator->() { return &sequences_; }
  const Sequences* operator->() const { return &sequences_; }
  Sequences& operator*() { return sequences_; }

 private:
  std::vector<std::byte> memory_;
  Sequences sequences_;
};

}  // namespace cria
