// Without PMIx, in place of roll_call.cc.

#include "mpi/roll_call.h"

namespace cria::mpi {

RollCall::RollCall() = default;

RollCall::~RollCall() = default;

std::vector<size_t> RollCall::FindMissing() { return {}; }

}  // namespace cria::mpi
