#include "converter/checkpoint/checkpoint.h"

#include <system_error>

namespace cria {

std::string FolderName(const std::filesystem::path& folder) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(folder, error).lexically_normal();
  if (error) absolute = folder;
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute.filename().string();
}

}  // namespace cria
