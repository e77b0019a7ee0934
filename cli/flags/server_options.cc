#include "cli/flags/server_options.h"

#include <cstdint>

namespace cria::cli {

void AddServerBounds(CommandLine& command, server::HttpBounds& bounds, size_t& max_waiting) {
  command
      .AddNumber("--max-connections", bounds.max_connections,
                 "Connections that the server has at the same time", size_t{1}, size_t{10'000})
      .Group(kServerGroup);
  command
      .AddNumber("--max-queue", max_waiting, "Requests that wait for a sequence; more are refused",
                 size_t{0}, size_t{100'000})
      .Group(kServerGroup);
}

}  // namespace cria::cli
