#include "xnn/pack_cache.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <system_error>

#include "core/format.h"
#include "core/format_bytes.h"
#include "model/model_outline.h"
#include "xnn/packed_file_writer.h"
#include "xnn/packing.h"

namespace cria::xnn {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".packed";

// Whether the file has the name of packed weights, or of their temporary file.
bool BelongsToCache(const fs::directory_entry& file) {
  std::string name = file.path().filename().string();
  const size_t temporary = name.rfind(".tmp-");
  if (name.starts_with('.') && temporary != std::string::npos) name.resize(temporary);
  std::error_code error;
  return name.ends_with(kExtension) && file.is_regular_file(error);
}

// The bytes freed.
Result<uint64_t> RemoveFile(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  const uint64_t bytes = error ? 0 : size;  // Another program may have removed it.
  const bool is_removed = fs::remove(path, error);
  if (!error) return is_removed ? bytes : 0;
  return Fail(ErrorCode::kIo, Format("{}: cannot remove: {}", path.string(), error.message()));
}

// Calls `visit` for every file of the cache; for none if the folder does not exist.
template <typename Visit>
Status ForEachFile(const std::string& folder, const Visit& visit) {
  std::error_code error;
  fs::directory_iterator file(folder, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    if (BelongsToCache(*file)) CRIA_RETURN_IF_ERROR(visit(*file));
  }
  if (!error) return {};
  return Fail(ErrorCode::kIo, Format("{}: cannot list: {}", folder, error.message()));
}

void Notify(const PackingOptions& options, std::string_view sentence) {
  if (options.on_notice != nullptr) options.on_notice(sentence);
}

Result<PackedWeights> MapFile(const ModelFile& model, const std::string& path) {
  CRIA_ASSIGN_OR_RETURN(const PackedFile file, PackedFile::Open(path));
  return PackedWeights::Map(model, file);
}

Result<PackedWeights> PackIntoCache(const ModelFile& model, const PackCache& cache,
                                    const PackingOptions& options, const ThreadPool& pool) {
  const std::string path = cache.PathFor(model);
  CRIA_RETURN_IF_ERROR(cache.MakeFolder());
  CRIA_ASSIGN_OR_RETURN(const PackTarget target, ThisProcessor());
  CRIA_RETURN_IF_ERROR(ReplacePackedFile(model, path, target, pool, options.on_progress));
  return MapFile(model, path);
}

// The packed weights in the model file itself.
Result<PackedWeights> MapOwn(const ModelFile& model) {
  CRIA_ASSIGN_OR_RETURN(platform::File file, model.DuplicateFile());
  CRIA_ASSIGN_OR_RETURN(const PackedFile packed,
                        PackedFile::Open(std::move(file), model.packed_offset()));
  return PackedWeights::Map(model, packed);
}

}  // namespace

std::string PackCache::PathFor(const ModelFile& model) const {
  return (fs::path(folder_) / Format("{}{}", DigestText(model.packing_digest()), kExtension))
      .string();
}

void PackCache::RenameOlderFile(const ModelFile& model) const {
  std::error_code ignored;
  const std::string path = PathFor(model);
  if (fs::exists(fs::symlink_status(path, ignored))) return;
  // Older names have half of the digest.
  const std::string ending =
      Format("-{}{}", DigestText(model.packing_digest()).substr(0, 16), kExtension);
  // If there are several, because copies of the model had different names, the last one remains.
  (void)ForEachFile(folder_, [&](const fs::directory_entry& file) -> Status {
    if (file.path().filename().string().ends_with(ending)) fs::rename(file.path(), path, ignored);
    return {};
  });
}

Result<std::vector<PackCache::Entry>> PackCache::List() const {
  CRIA_ASSIGN_OR_RETURN(const uint64_t fingerprint, LayoutFingerprint());
  std::vector<Entry> entries;
  CRIA_RETURN_IF_ERROR(ForEachFile(folder_, [&](const fs::directory_entry& file) -> Status {
    std::error_code error;
    Entry entry = {.path = file.path().string(), .bytes = file.file_size(error)};
    if (error) return {};  // It was removed meanwhile.
    if (const auto packed = PackedFile::Open(entry.path); !packed) {
      entry.defect = packed.error().message();
    } else {
      entry.model_name = packed->identity().model_name;
      entry.digest = DigestText(packed->identity().model_digest);
      entry.layer_schemes = packed->identity().layer_schemes;
      if (packed->identity().layout_fingerprint != fingerprint) {
        entry.defect = Format("packed for another processor ({})", packed->identity().processor);
      }
    }
    entries.push_back(std::move(entry));
    return {};
  }));
  std::ranges::sort(entries, {}, &Entry::path);
  return entries;
}

Result<uint64_t> PackCache::Clear() const {
  uint64_t freed_bytes = 0;
  CRIA_RETURN_IF_ERROR(ForEachFile(folder_, [&](const fs::directory_entry& file) -> Status {
    CRIA_ASSIGN_OR_RETURN(const uint64_t bytes, RemoveFile(file.path()));
    freed_bytes += bytes;
    return {};
  }));
  return freed_bytes;
}

Result<uint64_t> PackCache::Remove(const Entry& entry) const { return RemoveFile(entry.path); }

Status PackCache::MakeFolder() const {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) return {};
  return Fail(ErrorCode::kIo, Format("{}: cannot make this folder: {}", folder_, error.message()));
}

Result<PackedWeights> LoadPackedWeights(const ModelFile& model, const PackingOptions& options,
                                        const ThreadPool& pool) {
  if (model.packed_offset() != 0) return MapOwn(model);
  if (!options.packed_path.empty()) return MapFile(model, options.packed_path);
  const auto refuse = [](std::string why) {
    return Fail(ErrorCode::kNotFound, std::move(why), RemedyKind::kPack);
  };
  if (options.cache_folder.empty()) {
    if (options.never_pack) return refuse("there is no folder of packed weights");
    return PackedWeights::PackInMemory(model, pool, options.on_progress);
  }

  const PackCache cache(options.cache_folder);
  cache.RenameOlderFile(model);
  const std::string path = cache.PathFor(model);
  Result<PackedWeights> mapped = MapFile(model, path);
  if (mapped || mapped.error().code() == ErrorCode::kOutOfMemory) return mapped;
  if (options.never_pack) return refuse(mapped.error().message());
  if (mapped.error().code() != ErrorCode::kNotFound) Notify(options, mapped.error().message());

  CRIA_ASSIGN_OR_RETURN(const std::vector<uint64_t> matrix_bytes,
                        PackedBytes(OutlineOf(model).matrices));
  const uint64_t bytes = std::accumulate(matrix_bytes.begin(), matrix_bytes.end(), uint64_t{0});
  Notify(options, Format("packing the weights for this processor into {} ({}); later starts "
                         "map this file",
                         path, FormatBytes(bytes)));
  Result<PackedWeights> packed = PackIntoCache(model, cache, options, pool);
  // These errors come from the cache's folder, where another program may also have removed or
  // replaced the file; other errors come from the model or the caller.
  const std::array of_the_place = {ErrorCode::kIo, ErrorCode::kNotFound, ErrorCode::kUnsupported};
  if (packed || !std::ranges::contains(of_the_place, packed.error().code())) return packed;
  if (options.check_memory != nullptr) {
    if (const Status fits = options.check_memory(); !fits) {
      return Fail(fits.error().code(),
                  Format("{}; with the weights packed into memory instead, {}",
                         packed.error().message(), fits.error().message()),
                  fits.error().remedy());
    }
  }
  Notify(options,
         Format("{}; packing into memory instead, for this run only", packed.error().message()));
  return PackedWeights::PackInMemory(model, pool, options.on_progress);
}

}  // namespace cria::xnn
