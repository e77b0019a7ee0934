#pragma once

#include <string>

namespace cria {

// `text` in Unicode's normalization form C (Unicode Standard Annex 15): what can be written as one
// code point is, and marks are in one order. Bytes that are not UTF-8 stay, and what is before one
// has nothing to do with what is behind it. Takes O(n log n) for n bytes and memory in proportion;
// none where all code points are below U+0300, which have the form as they are.
std::string NormalizeToNfc(std::string text);

}  // namespace cria
