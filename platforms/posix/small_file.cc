#include "posix/small_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace cria::platform {

std::string ReadSmallFile(const std::string& path) {
  std::string contents;
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return contents;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(descriptor, buffer, sizeof buffer)) > 0) {
    contents.append(buffer, static_cast<size_t>(count));
  }
  close(descriptor);
  return contents;
}

}  // namespace cria::platform
