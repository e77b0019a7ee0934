#pragma once

#include <cstddef>
#include <vector>

#include "decode/kv_pages.h"

namespace cria {

// Pages with exactly the memory that they ask for.
class TestKvPages {
 public:
  explicit TestKvPages(const KvPages::Shape& shape)
      : memory_(KvPages::MemoryBytes(shape)), pages_(shape, memory_) {}
  TestKvPages(const TestKvPages&) = delete;
  TestKvPages& operator=(const TestKvPages&) = delete;

  KvPages* operator->() { return &pages_; }
  const KvPages* operator->() const { return &pages_; }
  KvPages& operator*() { return pages_; }

 private:
  std::vector<std::byte> memory_;
  KvPages pages_;
};

// The shape of a model's pages with one sequence of a context.
inline KvPages::Shape ShapeOfOneSequence(size_t context_tokens) {
  return {.num_pages = (context_tokens + kKvPageTokens - 1) / kKvPageTokens,
          .num_sequences = 1,
          .sequence_tokens = context_tokens};
}

}  // namespace cria
