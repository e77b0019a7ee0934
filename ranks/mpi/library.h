#pragma once

#include <cstdint>

namespace cria::mpi {

enum class Library : uint8_t { kOpenMpi, kMpich };

// The one that this program is linked with. Another one counts as OpenMPI.
Library LinkedLibrary();

}  // namespace cria::mpi
