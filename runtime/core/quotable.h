#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cria {

// How many bytes of a text Quotable returns, but for the mark that it was cut.
inline constexpr size_t kMaxQuotedBytes = 200;

// Bytes that came from a file, as a sentence may quote them: valid UTF-8 on one line. Bytes that
// are not UTF-8, and control characters, are written as \xNN. A text that would be longer than
// kMaxQuotedBytes ends, between two characters, with "...".
std::string Quotable(std::string_view bytes);

}  // namespace cria
