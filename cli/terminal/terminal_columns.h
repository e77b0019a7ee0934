#pragma once

#include <sys/ioctl.h>

#include <cstddef>
#include <cstdio>

namespace cria::cli {

// The width of the terminal at this stream; 0 if there is none, or if its width is not known.
inline size_t TerminalColumns(std::FILE* stream) {
  winsize size = {};
  return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

}  // namespace cria::cli
