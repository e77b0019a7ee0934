#pragma once

#include <string>

namespace cria {

// `text` in Unicode's normalization form C (Unicode Standard Annex 15): sequences that have a
// composed code point become that code point, and marks have a defined order. Bytes that are not
// UTF-8 are kept, and the texts before and after them are normalized separately. Takes O(n log n)
// time for n bytes, and memory in proportion; none if all code points are below U+0300, because
// such text is already normalized.
std::string NormalizeToNfc(std::string text);

}  // namespace cria
