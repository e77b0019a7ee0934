#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "converter/hub/checkpoint_name.h"
#include "cria/error.h"

namespace cria::hub {

// An open file, or a folder, of the operating system.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int number() const { return number_; }

 private:
  int number_;
};

// A file that is not yet known to be whole and right; its name ends with ".part". It stays if the
// program ends, so that a later download goes on after its last byte.
class PartialFile {
 public:
  uint64_t size_bytes() const { return size_bytes_; }
  Status Append(std::span<const std::byte> bytes);
  Status Empty();
  // Calls `take` with the content from the beginning on.
  Status ReadAll(const std::function<void(std::span<const std::byte>)>& take) const;

 private:
  friend class CheckpointFolder;
  PartialFile(Descriptor file, uint64_t size_bytes, std::string path)
      : file_(std::move(file)), size_bytes_(size_bytes), path_(std::move(path)) {}

  Descriptor file_;
  uint64_t size_bytes_;
  std::string path_;
};

// The folder CACHE/HOST/ORG/COMMIT/NAME, in which the files of one commit of a model are kept, and
// its locks. Below CACHE, symbolic links are never followed.
class CheckpointFolder {
 public:
  // Creates the folder and locks it, so that no other process writes into it; calls `waiting` once
  // if another process has it locked.
  static Result<CheckpointFolder> Open(const std::filesystem::path& cache, const std::string& host,
                                       const CheckpointName& name, const std::string& commit,
                                       const std::function<void()>& waiting);

  const std::filesystem::path& path() const { return path_; }

  // The size of a whole file; absent if it is not there.
  Result<std::optional<uint64_t>> WholeBytes(std::string_view file) const;
  // The size of what was downloaded of a file that is not whole.
  Result<uint64_t> PartialBytes(std::string_view file) const;
  Result<PartialFile> OpenPartial(std::string_view file) const;
  // Gives the partial file its name.
  Status Finish(std::string_view file) const;
  void RemovePartial(std::string_view file) const;

  // Lets other processes write into the folder, but not remove it.
  void Share();
  // Removes the folder and what it was created in, unless another process uses it.
  void Remove() const;

 private:
  CheckpointFolder() = default;

  static Result<std::optional<CheckpointFolder>> TryOpen(const std::filesystem::path& cache,
                                                         const std::string& host,
                                                         const CheckpointName& name,
                                                         const std::string& commit,
                                                         const std::function<void()>& waiting);
  // The folder of a file of the checkpoint, which is created if it does not exist.
  Result<Descriptor> FolderOf(std::string_view file) const;
  Result<std::optional<uint64_t>> BytesOf(std::string_view file, std::string_view ending) const;
  std::string PathOf(std::string_view file, std::string_view ending) const;

  std::filesystem::path path_;
  Descriptor folder_;
  Descriptor use_lock_;
  Descriptor download_lock_;
};

}  // namespace cria::hub
