#include "cli/plan/server_memory.h"

#include <cstdint>
#include <string>
#include <utility>

#include "core/format.h"
#include "core/format_bytes.h"
#include "server/prompts/prompt_bounds.h"
#include "server/requests/json_bounds.h"

namespace cria::cli {
namespace {

// What the threads that answer touch of their stacks, and the objects of an answer: a sampler, its
// text, its tokens.
constexpr uint64_t kAnswerBytes = 192 << 10;
// What a request takes that waits, without its text.
constexpr uint64_t kWaitingBytes = 8 << 10;
// The table of the matrices of a model that is not loaded, from which its plan is made.
constexpr uint64_t kModelBytes = 64 << 10;

}  // namespace

std::vector<MemoryLine> ServerMemory(const server::HttpBounds& bounds, size_t num_sequences,
                                     size_t max_waiting, const PrefixCacheOptions& prefix_cache,
                                     size_t num_models) {
  std::vector<MemoryLine> lines;
  const auto add = [&lines](std::string name, uint64_t bytes) {
    lines.push_back(MemoryLine::Other("server: " + std::move(name), MemoryKind::kPrivate, bytes));
  };
  add("connections", server::HttpConnectionBytes(bounds));
  add("requests", server::HttpBodyBytes(bounds) + max_waiting * kWaitingBytes);
  add("a large request", server::LargeRequestBytes(bounds.max_body_bytes));
  // The HTTP thread is one more, and reads short requests.
  add("answers", (num_sequences + 1) * kAnswerBytes + server::kShortRequestBytes);
  // Their texts and values are a part of the large request.
  add("tokens of embeddings and documents", num_sequences * server::kEmbeddingBytes);
  if (!prefix_cache.folder.empty()) {
    add(Format("prompts on the disk, at most {} there", FormatBytes(prefix_cache.max_bytes)),
        num_models * server::PromptFilesBytes());
  }
  if (num_models > 1) add("list of models", num_models * kModelBytes);
  return lines;
}

size_t ServerThreads(size_t num_sequences, const PrefixCacheOptions& prefix_cache,
                     size_t num_models) {
  // The HTTP thread is one more; of several models, one gives up those that are idle.
  const size_t num_others = num_models > 1 ? 2 : 1;
  return num_sequences + num_others + (prefix_cache.folder.empty() ? 0 : num_models);
}

}  // namespace cria::cli
