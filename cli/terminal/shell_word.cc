#include "cli/terminal/shell_word.h"

namespace cria::cli {

std::string ShellWord(std::string_view path) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+,:=@%";
  const bool is_plain = !path.empty() && path.find_first_not_of(kPlain) == path.npos;
  std::string word = is_plain ? "" : "'";
  if (path.starts_with('-')) word += "./";
  if (is_plain) return word.append(path);
  for (const char letter : path) {
    if (letter == '\'') {
      word += R"('\'')";
    } else {
      word += letter;
    }
  }
  return word += '\'';
}

}  // namespace cria::cli
