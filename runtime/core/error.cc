#include "cria/error.h"

namespace cria {

std::unexpected<Error> Fail(ErrorCode code, std::string message, Remedy remedy) {
  return std::unexpected<Error>(Error(code, std::move(message), remedy));
}

}  // namespace cria
