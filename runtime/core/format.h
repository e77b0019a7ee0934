#pragma once

#include <format>
#include <string>
#include <string_view>

namespace cria {

std::string FormatArguments(std::string_view text, std::format_args arguments);

// std::format, whose 30 kB come along with everything that calls it, as the one copy of the
// runtime's.
template <typename... Args>
std::string Format(std::format_string<Args...> text, Args&&... args) {
  return FormatArguments(text.get(), std::make_format_args(args...));
}

}  // namespace cria
