#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/flags/command_line.h"
#include "cli/flags/options.h"
#include "server/http/http_bounds.h"
#include "server/prompts/prompt_bounds.h"

namespace cria::cli {

// Options that decide the memory of a server, for cria-serve and for its plan.

// The default of -np.
inline constexpr size_t kServerSequences = 4;
// The default of --max-queue.
inline constexpr size_t kServerQueue = 64;

// Where prompts are kept that the KV cache gives up.
struct PrefixCacheOptions {
  std::string folder;  // Empty: nowhere.
  uint64_t max_bytes = server::kDefaultPromptBytes;
};
// --prefix-cache.
void AddPrefixCache(CommandLine& command, PrefixCacheOptions& options);

// --max-connections and --max-queue.
void AddServerBounds(CommandLine& command, server::HttpBounds& bounds, size_t& max_waiting);

}  // namespace cria::cli
