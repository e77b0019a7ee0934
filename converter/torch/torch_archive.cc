#include "converter/torch/torch_archive.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "converter/torch/torch_pickle.h"
#include "converter/torch/zip_directory.h"
#include "core/format.h"
#include "core/quotable.h"

namespace cria {
namespace {

constexpr std::string_view kPickle = "/data.pkl";

Result<std::string> ReadEntry(const platform::File& file, const ZipEntry& entry) {
  // The limit of a pickle and one byte more, so that ReadTorchPickle refuses a larger one.
  constexpr uint64_t kMaxBytes = (4 << 20) + 1;
  std::string bytes(std::min(entry.bytes, kMaxBytes), '\0');
  CRIA_RETURN_IF_ERROR(file.ReadAt(entry.offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

}  // namespace

Result<TensorSources> ReadTorchArchive(const std::filesystem::path& path) {
  CRIA_ASSIGN_OR_RETURN(auto opened, platform::File::Open(path.string()));
  const auto file = std::make_shared<const platform::File>(std::move(opened));
  const auto bad = [&](std::string_view what) {
    return Fail(ErrorCode::kInvalidFile, Format("{}: {}", file->path(), what));
  };
  CRIA_ASSIGN_OR_RETURN(const ZipDirectory directory, ReadZipDirectory(*file));
  // All entries are in one folder with any name.
  const auto pickle = std::ranges::find_if(directory, [](const auto& entry) {
    return entry.first.ends_with(kPickle) &&
           entry.first.find('/') == entry.first.size() - kPickle.size();
  });
  if (pickle == directory.end()) return bad("has no data.pkl, which torch.save would have written");
  const std::string folder = pickle->first.substr(0, pickle->first.size() - kPickle.size());
  if (const auto order = directory.find(folder + "/byteorder"); order != directory.end()) {
    CRIA_ASSIGN_OR_RETURN(const std::string name, ReadEntry(*file, order->second));
    if (name != "little") return bad("was written on a big-endian machine");
  }
  CRIA_ASSIGN_OR_RETURN(const std::string bytes, ReadEntry(*file, pickle->second));
  CRIA_ASSIGN_OR_RETURN(std::vector<PickledTensor> pickled, ReadTorchPickle(bytes, file->path()));
  TensorSources tensors;
  for (PickledTensor& tensor : pickled) {
    const std::string entry_name = Format("{}/data/{}", folder, tensor.storage);
    const auto entry = directory.find(entry_name);
    if (entry == directory.end()) {
      return bad(Format("tensor \"{}\" is in {}, which is missing", Quotable(tensor.name),
                        Quotable(entry_name)));
    }
    const uint64_t element_bytes = BlockOf(tensor.type).bytes;
    if (entry->second.bytes / element_bytes < tensor.storage_elements) {
      return bad(Format("tensor \"{}\" is in {}, which has {} bytes for {} elements",
                        Quotable(tensor.name), Quotable(entry_name), entry->second.bytes,
                        tensor.storage_elements));
    }
    TensorSource source = {.name = tensor.name,
                           .type = tensor.type,
                           .shape = std::move(tensor.shape),
                           .file = file,
                           .offset = entry->second.offset + tensor.first_element * element_bytes};
    tensors.emplace(std::move(tensor.name), std::move(source));
  }
  return tensors;
}

}  // namespace cria
