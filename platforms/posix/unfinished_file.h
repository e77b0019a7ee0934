#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>

namespace cria {

// The name of a new file that must not outlive its writer: the destructor removes it, and so does
// RemoveAll. All such names of the process are in one list.
class UnfinishedFile {
 public:
  // Makes the file with this mode, for reading and writing, and puts its name into the list; no
  // signal is handled in between. Sets `descriptor` to the open file. Returns null, with errno set,
  // if a file of this name exists already or cannot be made.
  static std::unique_ptr<UnfinishedFile> Create(std::filesystem::path path, mode_t mode,
                                                int& descriptor);
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;
  ~UnfinishedFile();

  const std::filesystem::path& path() const { return path_; }
  // Takes the name out of the list and leaves it alone from then on: the file is renamed.
  void Forget();

  // Removes every file of the list. The caller must then end the process: signals stay blocked in
  // this thread, and any thread that makes or removes such a file waits forever. Safe in signal
  // handlers.
  static void RemoveAll();

 private:
  explicit UnfinishedFile(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  UnfinishedFile* next_ = nullptr;
  UnfinishedFile** link_ = nullptr;  // The list's pointer to this; null if it is not in the list.
};

}  // namespace cria
