#include "core/format.h"

namespace cria {

std::string FormatArguments(std::string_view text, std::format_args arguments) {
  return std::vformat(text, arguments);
}

}  // namespace cria
