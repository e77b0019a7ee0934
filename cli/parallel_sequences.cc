#include "cli/parallel_sequences.h"

#include <thread>
#include <vector>

namespace cria::cli {

Status RunSequences(size_t num_sequences, const std::function<Status(size_t sequence)>& run) {
  std::vector<Status> statuses(num_sequences);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < num_sequences; ++i) {
      threads.emplace_back([&, i] { statuses[i] = run(i); });
    }
    statuses[0] = run(0);
  }
  for (const Status& status : statuses) CRIA_RETURN_IF_ERROR(status);
  return {};
}

}  // namespace cria::cli
