#pragma once

#include <chrono>

namespace cria::mpi {

// Ends the processes of all ranks, or at least this one.
[[noreturn]] void EndAll();

// Ends what of mpirun started this process on this board, if it still runs some seconds later: it
// would wait for a board that cannot be reached until TCP gives up, a quarter of an hour later.
void EndLauncherSoon();

// Lets the kernel end this process after so long, because MPI may wait for ever for a rank that is
// gone. 0 seconds take that back.
void EndWithin(std::chrono::seconds time);

}  // namespace cria::mpi
