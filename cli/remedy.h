#pragma once

#include <string>

#include "cria/error.h"

namespace cria::cli {

// The error's sentence with its remedy, in terms of the flags and commands of these programs.
std::string Sentence(const Error& error);

}  // namespace cria::cli
