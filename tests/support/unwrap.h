#pragma once

#include <stdexcept>
#include <utility>

#include "cria/error.h"

namespace cria {

// The value; an error fails the test with its sentence.
template <typename T>
T Unwrap(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

inline void Unwrap(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message());
}

}  // namespace cria
