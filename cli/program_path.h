#pragma once

#include <string>

namespace cria::cli {

// The path of the program of this name that was installed or built with this one; empty if the
// system does not tell where this program is.
std::string ProgramBesideThis(const char* name);

}  // namespace cria::cli
