#pragma once

#include <string>

#include "cria/error.h"

namespace cria::c_api {

// The error's sentence with its remedy, in terms of the options of the C API.
std::string Sentence(const Error& error);

}  // namespace cria::c_api
