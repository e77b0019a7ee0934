#pragma once

namespace cria {

// The small letter of a capital ASCII letter, and any other byte as it is, in every locale.
constexpr char ToLower(char byte) {
  return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte;
}

}  // namespace cria
