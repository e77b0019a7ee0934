#include "mpi/end_all.h"

#include <mpi.h>
#include <signal.h>
#include <unistd.h>

namespace cria::mpi {

void EndWithin(std::chrono::seconds time) {
  signal(SIGALRM, SIG_DFL);
  alarm(static_cast<unsigned>(time.count()));
}

void EndAll() {
  EndWithin(std::chrono::seconds(3));
  MPI_Abort(MPI_COMM_WORLD, 1);
  _exit(1);
}

}  // namespace cria::mpi
