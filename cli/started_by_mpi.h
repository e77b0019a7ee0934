#pragma once

namespace cria::cli {

// Whether mpirun, or a program like it, started this process beside others.
bool IsStartedByMpi();
// Whether it is rank 0, or was not started like that.
bool IsFirstOfMpi();

}  // namespace cria::cli
