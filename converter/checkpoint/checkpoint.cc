#include "converter/checkpoint/checkpoint.h"

#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {

Status AddTensor(std::string name, TensorSource source, Checkpoint& checkpoint) {
  if (checkpoint.tensors.contains(name)) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: two tensors have the meaning of \"{}\"",
                                                source.file->path(), Quotable(name)));
  }
  checkpoint.tensors.emplace(std::move(name), std::move(source));
  return {};
}

std::string FolderName(const std::filesystem::path& folder) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(folder, error).lexically_normal();
  if (error) absolute = folder;
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute.filename().string();
}

}  // namespace cria
