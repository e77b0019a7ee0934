#pragma once

#include <sys/types.h>

namespace cria::mpi {

// Whether a process is mpirun, or what mpirun has started on another board. Those of MPICH on other
// boards are not known.
bool IsLauncher(pid_t process);

// Whether a standard stream (0, 1 or 2) of the mpirun that started this process on its own board is
// a terminal. This process has pipes in its place, or terminals that nobody sees.
bool LauncherHasTerminal(int stream);

}  // namespace cria::mpi
