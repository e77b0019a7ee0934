#pragma once

#include <filesystem>
#include <string>

namespace cria::support {

// A new empty directory, which is removed with its contents when the object is destroyed.
class TemporaryDirectory {
 public:
  TemporaryDirectory();  // Throws std::runtime_error on failure.
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path operator/(const TemporaryDirectory& directory,
                                       const std::string& name) {
  return directory.path() / name;
}

}  // namespace cria::support
