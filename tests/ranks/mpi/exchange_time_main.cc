// cria-exchange-time COUNT VALUES: measures, under mpirun, how long ranks take to add up so many
// values, COUNT times ten. Rank 0 prints the seconds of one. It is the median of means of ten:
// single sums differ, because a rank that was late finds the messages of the others already there,
// and the mean of all has what disturbed them.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/mpi_transport.h"
#include "ranks/ordered_collective.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kGroup = 10;

size_t NumberOf(std::string_view text) {
  size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

cria::Status Measure(size_t count, size_t num_values) {
  CRIA_ASSIGN_OR_RETURN(const std::unique_ptr<cria::mpi::MpiTransport> transport,
                        cria::mpi::MpiTransport::Start({}, [](std::string_view sentence) {
                          std::fprintf(stderr, "%s\n", std::string(sentence).c_str());
                        }));
  cria::ranks::OrderedCollective collective(*transport);
  CRIA_RETURN_IF_ERROR(
      collective.Reserve(collective.MemoryBytes(num_values, cria::WireType::kF32)));
  std::vector<float> values(num_values, 0.0f);
  // Connects the ranks.
  CRIA_RETURN_IF_ERROR(collective.Sum(values, cria::WireType::kF32));
  std::vector<double> means(count);
  for (double& mean : means) {
    const Clock::time_point begin = Clock::now();
    for (size_t i = 0; i < kGroup; ++i)
      CRIA_RETURN_IF_ERROR(collective.Sum(values, cria::WireType::kF32));
    mean = std::chrono::duration<double>(Clock::now() - begin).count() / kGroup;
  }
  std::ranges::nth_element(means, means.begin() + static_cast<ptrdiff_t>(count / 2));
  if (transport->rank() == 0) std::printf("%.9f\n", means[count / 2]);
  std::fflush(stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const size_t count = argc == 3 ? NumberOf(argv[1]) : 0;
  const size_t num_values = argc == 3 ? NumberOf(argv[2]) : 0;
  if (count == 0 || num_values == 0) {
    std::fputs("usage: mpirun cria-exchange-time COUNT VALUES\n", stderr);
    return 2;
  }
  const cria::Status status = Measure(count, num_values);
  if (!status) std::fprintf(stderr, "%s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
