#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "cria/error.h"

namespace cria::cli {

// A folder of the store in which a model is made. It gets its name when everything in it is
// complete, and is removed unless that happens.
//
// It is made under the name ID.new and locked. The lock belongs to the folder itself and not to its
// name, so a process that waited for it finds out whether the folder was renamed or removed
// meanwhile. Programs that are started with descriptor() share the lock, so that no other process
// begins while a converter still runs whose parent was killed.
class NewEntry {
 public:
  // Returns nothing if the entry exists, also if another process has just made it; `waiting` is
  // called once if another process is making it.
  static Result<std::optional<NewEntry>> Begin(const std::filesystem::path& store,
                                               const std::string& id,
                                               const std::function<void()>& waiting);
  NewEntry(NewEntry&& other) noexcept;
  NewEntry& operator=(NewEntry&&) = delete;
  ~NewEntry();

  const std::filesystem::path& folder() const { return folder_; }
  int descriptor() const { return descriptor_; }

  // Gives the folder its name.
  Status Commit();

 private:
  NewEntry(std::filesystem::path store, std::string id, int descriptor);

  std::filesystem::path store_;
  std::string id_;
  std::filesystem::path folder_;
  int descriptor_ = -1;  // The open folder; -1: there is none any more.
};

// Removes folders that were left unfinished: those whose process was killed while it made or
// removed a model.
void RemoveAbandonedEntries(const std::filesystem::path& store);

// Removes an entry of the store: it vanishes at once, and then its files are removed.
Status RemoveStoredEntry(const std::filesystem::path& store, const std::string& id);

}  // namespace cria::cli
