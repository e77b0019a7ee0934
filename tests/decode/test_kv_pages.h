#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
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
inline KvPages::Shape ShapeOfOneSequence(size_t context_tokens, size_t chunk_tokens = 0,
                                         std::vector<uint32_t> windows = {0}) {
  return {.num_pages = NumKvPages(context_tokens),
          .num_sequences = 1,
          .sequence_tokens = context_tokens,
          .chunk_tokens = chunk_tokens,
          .windows = std::move(windows)};
}

}  // namespace cria
