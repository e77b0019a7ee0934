#include "converter/checkpoint/checkpoint.h"

#include <system_error>
#include <utility>

#include "core/format.h"
#include "core/quotable.h"

namespace cria {

Status AddTensor(std::string name, TensorSource source, Checkpoint& checkpoint) {
  const auto [place, is_new] = checkpoint.tensors.try_emplace(std::move(name));
  if (!is_new) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: two tensors have the meaning of \"{}\"",
                                                source.file->path(), Quotable(place->first)));
  }
  place->second = std::move(source);
  return {};
}

std::unexpected<Error> WrongShape(const TensorSource& source, const std::vector<uint64_t>& wanted,
                                  const Checkpoint& checkpoint) {
  return Fail(ErrorCode::kInvalidFile,
              Format("{}: tensor \"{}\" has shape {}, but {} calls for {}", source.file->path(),
                     Quotable(source.name), source.ShapeText(), checkpoint.described_by,
                     TensorSource{.shape = wanted}.ShapeText()));
}

std::string FolderName(const std::filesystem::path& folder) {
  std::error_code error;
  auto absolute = std::filesystem::absolute(folder, error).lexically_normal();
  if (error) absolute = folder;
  if (!absolute.has_filename()) absolute = absolute.parent_path();
  return absolute.filename().string();
}

}  // namespace cria
