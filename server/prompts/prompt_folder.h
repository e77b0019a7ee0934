#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cria/error.h"
#include "server/prompts/prompt_index.h"

namespace cria::server {

// The folder of the files of prompts, which belongs to one program at a time.
class PromptFolder {
 public:
  // Makes the folder, for its owner alone, if it does not exist. Fails if others may write into it,
  // if this program may not, or if another program has it.
  static Result<PromptFolder> Open(const std::string& path);
  PromptFolder(PromptFolder&& other) noexcept;
  PromptFolder& operator=(PromptFolder&&) = delete;
  ~PromptFolder();

  const std::string& path() const { return path_; }
  std::string PathOf(const PromptIndex::Name& name) const;
  // The text of a file's name; nothing if it is none of PathOf.
  static std::optional<PromptIndex::Name> NameOf(std::string_view file_name);

  struct File {
    PromptIndex::Name name = {};
    bool is_regular = false;  // And no link.
  };
  // The files, the one that was used last at the end. Removes what a killed program has left.
  std::vector<File> List() const;
  // Notes that a file is used, for the next List.
  void NoteUse(const PromptIndex::Name& name) const;
  // Whether the name is that of a file, and not of a link or folder.
  bool IsRegular(const PromptIndex::Name& name) const;
  // Removes a file or link. A folder stays.
  void Remove(const PromptIndex::Name& name) const;

 private:
  PromptFolder(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // Locked; -1: moved from.
};

}  // namespace cria::server
