#include "mpi/library.h"

#include <mpi.h>

namespace cria::mpi {

Library LinkedLibrary() {
#ifdef MPICH_VERSION
  return Library::kMpich;
#else
  return Library::kOpenMpi;
#endif
}

}  // namespace cria::mpi
