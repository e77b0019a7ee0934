#include "cli/model_name.h"

#include <filesystem>
#include <string_view>
#include <system_error>

namespace cria::cli {
namespace {

// The name of a checkpoint on a hub without ORG and REVISION in "hf:ORG/NAME[:FILE.gguf]@REVISION".
std::string HubModelName(std::string_view checkpoint) {
  checkpoint = checkpoint.substr(0, checkpoint.find('@'));
  checkpoint.remove_prefix(checkpoint.find_last_of("/:") + 1);
  constexpr std::string_view kGguf = ".gguf";
  if (checkpoint.ends_with(kGguf)) checkpoint.remove_suffix(kGguf.size());
  return std::string(checkpoint);
}

}  // namespace

std::string ModelNameFor(const std::string& checkpoint) {
  if (checkpoint.starts_with("hf:")) return HubModelName(checkpoint) + ".cria";
  std::error_code error;
  auto absolute = std::filesystem::absolute(checkpoint, error).lexically_normal();
  if (error) absolute = checkpoint;
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  const bool is_folder = std::filesystem::is_directory(checkpoint, error);
  return (is_folder ? absolute.filename() : absolute.stem()).string() + ".cria";
}

}  // namespace cria::cli
