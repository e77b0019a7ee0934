#include "cria/error.h"

namespace cria {

Error::Error(ErrorCode code, std::string message, Remedy remedy)
    : details_(new Details{code, remedy, std::move(message)}) {}

Error::Error(const Error& other)
    : details_(other.details_ == nullptr ? nullptr : new Details(*other.details_)) {}

void Error::Free(const Details* details) { delete details; }

std::unexpected<Error> Fail(ErrorCode code, std::string message, Remedy remedy) {
  return std::unexpected<Error>(Error(code, std::move(message), remedy));
}

}  // namespace cria
