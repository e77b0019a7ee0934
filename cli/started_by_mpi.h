#pragma once

namespace cria::cli {

// Whether mpirun, or a program like it, started this process beside others.
bool IsStartedByMpi();

}  // namespace cria::cli
