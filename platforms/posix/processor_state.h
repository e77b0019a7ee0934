#pragma once

#include <string>

#include "core/platform.h"

namespace cria::platform {

// ReadProcessorState with `root` as a prefix of all paths: empty for the system's own files; tests
// pass others.
ProcessorState ProcessorStateBelow(const std::string& root);

}  // namespace cria::platform
