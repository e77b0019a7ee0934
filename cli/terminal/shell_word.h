#pragma once

#include <string>
#include <string_view>

namespace cria::cli {

// A path as a word of a command that users can copy into a shell: quoted if necessary, and never
// taken for an option.
std::string ShellWord(std::string_view path);

}  // namespace cria::cli
