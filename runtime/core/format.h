#pragma once

#include <format>
#include <string>
#include <string_view>

namespace cria {

std::string FormatArguments(std::string_view text, std::format_args arguments);

// std::format, compiled once: its 30 kB would otherwise be in every program and library that calls
// it.
template <typename... Args>
std::string Format(std::format_string<Args...> text, Args&&... args) {
  return FormatArguments(text.get(), std::make_format_args(args...));
}

}  // namespace cria
