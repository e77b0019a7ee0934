#include "cli/terminal/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <initializer_list>

namespace cria::cli {

void TakeClosedStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1) continue;
    // Gets the smallest descriptor that is free, which is this one. Programs that are started by
    // this one get it, too.
    open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace cria::cli
