#include "cli/plan/server_memory.h"

#include <cstdint>

#include "server/api/json_bounds.h"

namespace cria::cli {
namespace {

// What the threads that answer touch of their stacks, and the objects of an answer: a sampler, its
// text, its tokens.
constexpr uint64_t kAnswerBytes = 192 << 10;
// What a request takes that waits, without its text.
constexpr uint64_t kWaitingBytes = 8 << 10;

}  // namespace

std::vector<MemoryLine> ServerMemory(const server::HttpBounds& bounds, size_t num_sequences,
                                     size_t max_waiting) {
  return {
      {"server: connections", MemoryKind::kPrivate, server::HttpConnectionBytes(bounds)},
      {"server: requests", MemoryKind::kPrivate,
       server::HttpBodyBytes(bounds) + max_waiting * kWaitingBytes},
      {"server: a large request", MemoryKind::kPrivate,
       server::LargeRequestBytes(bounds.max_body_bytes)},
      // The HTTP thread is one more, and reads short requests.
      {"server: answers", MemoryKind::kPrivate,
       (num_sequences + 1) * kAnswerBytes + server::kShortRequestBytes},
  };
}

}  // namespace cria::cli
