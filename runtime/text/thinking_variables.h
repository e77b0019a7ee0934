#pragma once

#include <array>
#include <string_view>

namespace cria {

// Names of the variable that turns reasoning on and off, in chat templates that have one. Its value
// is true or false: a template would take the text "false" for true.
inline constexpr std::array<std::string_view, 2> kThinkingVariables = {"enable_thinking",
                                                                       "thinking"};

}  // namespace cria
