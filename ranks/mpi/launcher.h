#pragma once

#include <sys/types.h>

namespace cria::mpi {

// Whether a process is mpirun, or what OpenMPI's has started on another board.
bool IsLauncher(pid_t process);

// The mpirun that started this process, if it runs on the same board; otherwise 0.
pid_t MpirunOfThisBoard();

// Whether a standard stream (0, 1 or 2) of that mpirun is a terminal. This process itself has a
// pipe to mpirun in its place, or a terminal that mpirun made.
bool LauncherHasTerminal(int stream);

}  // namespace cria::mpi
