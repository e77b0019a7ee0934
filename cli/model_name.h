#pragma once

#include <string>

namespace cria::cli {

// The name of the model file that a checkpoint becomes if no other name is given: the checkpoint's
// with .cria, in the current folder.
std::string ModelNameFor(const std::string& checkpoint);

}  // namespace cria::cli
