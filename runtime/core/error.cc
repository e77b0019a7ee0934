#include "cria/error.h"

namespace cria {

Error::Error(ErrorCode code, std::string message, RemedyKind remedy)
    : Error(code, std::move(message), Remedy(remedy)) {}

Error::Error(ErrorCode code, std::string message, Remedy remedy)
    : details_(new Details{code, std::move(remedy), std::move(message)}) {}

Error::Error(const Error& other)
    : details_(other.details_ == nullptr ? nullptr : new Details(*other.details_)) {}

void Error::Free(const Details* details) { delete details; }

std::unexpected<Error> Fail(ErrorCode code, std::string message, RemedyKind remedy) {
  return std::unexpected<Error>(Error(code, std::move(message), remedy));
}

std::unexpected<Error> Fail(ErrorCode code, std::string message, Remedy remedy) {
  return std::unexpected<Error>(Error(code, std::move(message), std::move(remedy)));
}

}  // namespace cria
