#pragma once

#include <cstddef>

#include "cli/flags/command_line.h"
#include "server/http/http_bounds.h"

namespace cria::cli {

// Options that decide the memory of a server, for cria-serve and for its plan.

inline constexpr const char* kServerGroup = "Server";
// The default of -np.
inline constexpr size_t kServerSequences = 4;
// The default of --max-queue.
inline constexpr size_t kServerQueue = 64;

// --max-connections and --max-queue.
void AddServerBounds(CommandLine& command, server::HttpBounds& bounds, size_t& max_waiting);

}  // namespace cria::cli
