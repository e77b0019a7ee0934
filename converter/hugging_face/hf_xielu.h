#pragma once

#include "converter/checkpoint/checkpoint.h"
#include "cria/error.h"

namespace cria {

// Takes the numbers of HiddenAct::kXielu from the tensors of the layers into the configuration.
Status ReadHfXielu(Checkpoint& checkpoint);

}  // namespace cria
