#pragma once

#include <filesystem>
#include <memory>

namespace cria {

// The name of a new file that must not outlive its writer: the destructor removes it, and so does
// RemoveAll. All such names of the process are in one list.
class UnfinishedFile {
 public:
  // Makes the file, for reading and writing, and puts its name into the list; nothing that ends the
  // process comes between. Sets `descriptor` to the open file; null with errno set if there is a
  // file of this name already, or if it cannot be made.
  static std::unique_ptr<UnfinishedFile> Create(std::filesystem::path path, int& descriptor);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

  const std::filesystem::path& path() const { return path_; }
  // Takes the name out of the list and leaves it alone from then on: the file is renamed.
  void Forget();

  // Removes every file of the list. The caller ends the process right after: signals stay blocked
  // in this thread, and any thread that makes or removes such a file waits forever.
  // Async-signal-safe.
  static void RemoveAll();

 private:
  explicit UnfinishedFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  UnfinishedFile* next_ = nullptr;
  UnfinishedFile** link_ = nullptr;  // What points here; null where this is not in the list.
};

}  // namespace cria
