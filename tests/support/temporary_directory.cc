#include "support/temporary_directory.h"

#include <stdlib.h>

#include <stdexcept>
#include <system_error>

namespace cria::support {

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "cria-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  // A test may have removed the write permission of this directory or one below it.
  std::error_code ignored;
  using std::filesystem::perms;
  std::filesystem::permissions(path_, perms::owner_all, std::filesystem::perm_options::add,
                               ignored);
  std::filesystem::recursive_directory_iterator entries(path_, ignored);
  for (; entries != std::filesystem::end(entries); entries.increment(ignored)) {
    if (entries->is_directory(ignored) && !entries->is_symlink(ignored)) {
      std::filesystem::permissions(entries->path(), perms::owner_all,
                                   std::filesystem::perm_options::add, ignored);
    }
  }
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cria::support
