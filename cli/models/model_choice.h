#pragma once

#include <string>

namespace cria::cli {

// What the user gives: -m and -y.
struct ModelChoice {
  std::string name;     // As FindNamedModel takes it.
  bool agrees = false;  // Nothing is asked before a model is downloaded or converted.
};

}  // namespace cria::cli
