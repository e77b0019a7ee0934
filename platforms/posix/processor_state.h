#pragma once

#include <string>

#include "core/platform.h"

namespace cria::platform {

// ReadProcessorState, looked up below `root`, which is empty for the system's own files; tests give
// others.
ProcessorState ProcessorStateBelow(const std::string& root);

}  // namespace cria::platform
