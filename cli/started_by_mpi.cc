#include "cli/started_by_mpi.h"

#include <cstdlib>

namespace cria::cli {

bool IsStartedByMpi() {
  // OpenMPI, and MPICH and Slurm, tell how many processes there are.
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 1) return true;
  }
  return false;
}

bool IsFirstOfMpi() {
  for (const char* const name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && std::atoi(value) > 0) return false;
  }
  return true;
}

}  // namespace cria::cli
