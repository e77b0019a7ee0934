#include "converter/checkpoint.h"

#include <format>
#include <system_error>

#include "converter/hf_checkpoint.h"

namespace cria {

Result<Checkpoint> OpenCheckpoint(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return Fail(ErrorCode::kNotFound, std::format("{}: does not exist", path.string()));
  }
  if (std::filesystem::is_directory(status)) return OpenHfCheckpoint(path);
  return Fail(ErrorCode::kUnsupported,
              std::format("{}: is a file; give the folder that holds config.json and the weights",
                          path.string()));
}

}  // namespace cria
