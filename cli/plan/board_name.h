#pragma once

#include <string_view>

#include "cria/error.h"
#include "raspberry-pi/boards.h"

namespace cria::cli {

// The board with this name. The error lists all boards.
Result<const raspberry_pi::Board*> BoardNamed(std::string_view name);

}  // namespace cria::cli
