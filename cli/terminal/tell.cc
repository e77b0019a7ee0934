#include "cli/terminal/tell.h"

#include <cstdio>

#include "cli/terminal/terminal_columns.h"
#include "cli/terminal/word_wrap.h"

namespace cria::cli {

void Tell(std::string_view line) {
  WordWrap wrap([] { return TerminalColumns(stderr); },
                [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); });
  wrap.Append(line);
  wrap.Finish();
  std::fputc('\n', stderr);
}

}  // namespace cria::cli
