#pragma once

#include <chrono>

namespace cria::mpi {

// Ends the processes of all ranks, or at least this one.
[[noreturn]] void EndAll();

// Lets the kernel end this process after so long, because MPI may wait for ever for a rank that is
// gone. 0 seconds take that back.
void EndWithin(std::chrono::seconds time);

}  // namespace cria::mpi
