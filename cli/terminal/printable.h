#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cria::cli {

// Text from files or command lines, made safe for a line of a message or table. Characters that
// break the line, drive the terminal or change the direction of writing become escapes such as
// \x1b and \u202e; so do bytes that are not UTF-8. Never use it for what a model writes.
std::string Printable(std::string_view text);

// The text, or if it has more characters than `max_characters`, its beginning and an ellipsis,
// which is one of them.
std::string Shortened(std::string_view text, size_t max_characters);

}  // namespace cria::cli
