#include "posix/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

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

std::vector<std::string> PathsIn(const std::string& folder, std::string_view beginning,
                                 std::string_view end) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(beginning) && name.ends_with(end)) paths.push_back(entry->path().string());
  }
  return paths;
}

}  // namespace cria::platform
