#include "cli/model_name.h"

#include <filesystem>
#include <system_error>

namespace cria::cli {

std::string ModelNameFor(const std::string& checkpoint) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(checkpoint, error).lexically_normal();
  if (error) absolute = checkpoint;
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  const bool is_folder = std::filesystem::is_directory(checkpoint, error);
  return (is_folder ? absolute.filename() : absolute.stem()).string() + ".cria";
}

}  // namespace cria::cli
